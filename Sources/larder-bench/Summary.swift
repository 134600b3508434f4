// The table for people: each figure beside its aim.

/// An aim that a figure is held against.
private struct Aim {
    let text: String
    let isMet: Bool?
}

extension Bench {
    /// The results as a table, and which aims are met.
    var summary: String {
        var rows = [["figure", "result", "aim", ""]]
        for line in lines where line["cpus"] == nil || line["depth"] != nil {
            let aim = aim(for: line)
            rows.append([title(line), result(line), aim?.text ?? "", aim.map { Bench.verdict($0.isMet) } ?? ""])
        }
        let widths = (0..<4).map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            row.indices.map { row[$0] + String(repeating: " ", count: widths[$0] - row[$0].count) }
                .joined(separator: "  ").trimmed + "\n"
        }.joined()
    }

    private static func verdict(_ isMet: Bool?) -> String { isMet.map { $0 ? "met" : "MISSED" } ?? "not compared" }

    private func title(_ line: ResultLine) -> String {
        var words: [String] = []
        for name in ["figure", "start", "cache", "after", "cpus", "condition", "order", "query", "rate"] {
            if case .text(let text)? = line[name] { words.append(text) }
        }
        if let depth = line.number("depth") { words.append("depth \(Int(depth))") }
        if let scans = line.number("scans_at_once") { words.append("\(Int(scans)) scans") }
        if let subscribers = line.number("subscribers") { words.append("\(Int(subscribers)) subscribers") }
        if let bytes = line.number("write_bytes") { words.append("\(Int(bytes) / 1_024) KiB") }
        return words.joined(separator: ", ")
    }

    private func result(_ line: ResultLine) -> String {
        if let bytes = line.number("rss_anon_bytes") { return "\(Bench.short(bytes / 1_048_576)) MiB" }
        if let encoded = line.number("encoded_bytes_per_record"), let segment = line.number("segment_bytes_per_record")
        {
            return "\(Bench.short(encoded)) bytes encoded, \(Bench.short(segment)) in segments"
        }
        if case .text? = line["after"], let time = line.number("seconds") { return "\(Bench.short(time * 1_000)) ms" }
        if case .text("search")? = line["figure"], let time = line.number("seconds") {
            return
                "\(Bench.short(time * 1_000)) ms, once open \(Bench.short(line.number("seconds_once_open").map { $0 * 1_000 })) ms"
        }
        if let first = line.number("first_page_microseconds") { return "\(Bench.short(first)) us the first" }
        if line["scans_at_once"] != nil, let p99 = line.number("p99_microseconds") {
            return "p99 \(Bench.short(p99 / 1_000)) ms"
        }
        if case .text("compaction")? = line["figure"], let rate = line.number("bytes_per_second") {
            return "\(Bench.short(line.number("seconds"))) s, \(Bench.short(rate / 1_048_576)) MiB/s"
        }
        if let p99 = line.number("get_p99_microseconds"), let rate = line.number("records_per_second") {
            return "\(Bench.short(rate / 1_000)) k records/s, p99 of gets \(Bench.short(p99 / 1_000)) ms"
        }
        if let rate = line.number("gets_per_second"), let replays = line.number("replayed_per_second") {
            return
                "\(Bench.short(rate / 1_000)) k gets/s one by one, \(Bench.short(replays / 1_000)) k records/s replayed"
        }
        if let rate = line.number("records_per_second") { return "\(Bench.short(rate / 1_000)) k records/s" }
        if let rate = line.number("bytes_per_second") { return "\(Bench.short(rate / 1e6)) MB/s" }
        return ""
    }

    private func aim(for line: ResultLine) -> Aim? {
        guard case .text(let figure)? = line["figure"] else { return nil }
        switch figure {
        case "import" where line.number("subscribers") == 0: return importAim(line)
        case "import":
            let ratio = line.number("ratio_to_none")
            return Aim(text: "\(Bench.short(ratio)) of without a subscriber; 0.75", isMet: ratio.map { $0 >= 0.75 })
        case "reimport":
            let first = lines.first { $0.number("subscribers") == 0 }?.number("records_per_second")
            let isMet = first.flatMap { first in line.number("records_per_second").map { $0 >= first } }
            return Aim(text: "the first import's rate, no record written", isMet: isMet)
        case "replay":
            guard case .text("warm")? = line["cache"] else { return nil }
            return Aim(text: "3 M records/s", isMet: line.number("records_per_second").map { $0 >= 3e6 })
        case "get":
            guard case .text("one")? = line["cpus"], line.number("depth") == 16 else { return nil }
            return Aim(text: "500 k/s", isMet: line.number("records_per_second").map { $0 >= 500_000 })
        case "memory":
            guard let used = line.number("rss_anon_bytes"), let limit = line.number("limit_bytes") else { return nil }
            return Aim(text: "at most \(Bench.short(limit / 1_048_576)) MiB", isMet: used <= limit)
        case "size": return sizeAim(line)
        case "list_where":
            let ratio = line.number("ratio_to_sqlite")
            return Aim(text: "\(Bench.short(ratio)) of SQLite; 0.5", isMet: ratio.map { $0 >= 0.5 })
        case "page":
            let ratio = line.number("ratio_of_far_page")
            let page = line.number("far_page").map { "\(Int($0))" } ?? "?"
            return Aim(text: "page \(page) \(Bench.short(ratio)) of it; 1.2", isMet: ratio.map { $0 <= 1.2 })
        case "search": return Aim(text: "1 s from a cold start", isMet: line.number("seconds").map { $0 <= 1 })
        case "get_beside_scans":
            return Aim(text: "p99 under 5 ms", isMet: line.number("p99_microseconds").map { $0 < 5_000 })
        case "open": return openAim(line)
        case "compaction":
            let ratio = line.number("ratio_to_live")
            return Aim(text: "\(Bench.short(ratio)) of live entries; 1.01", isMet: ratio.map { $0 <= 1.01 })
        case "beside_compaction": return besideAim(line)
        case "compressed":
            guard case .text("zstd")? = line["blocks"], let ratio = line.number("ratio_to_sqlite") else { return nil }
            return Aim(text: "\(Bench.short(ratio)) of SQLite's bytes; 0.6", isMet: ratio <= 0.6)
        default: return nil
        }
    }

    private func openAim(_ line: ResultLine) -> Aim? {
        guard let count = line.number("records"), let time = line.number("seconds_min"),
            case .text(let after)? = line["after"],
            let bytes = line.number("anonymous_bytes_per_record")
        else { return nil }
        // What holds for a million holds for fewer, and what for ten for all between.
        let limit = (count > 1e6 ? [0.3, 1] : [0.035, 0.1])[after == "close" ? 0 : 1]
        return Aim(
            text: "\(Bench.short(limit * 1_000)) ms; best \(Bench.short(time * 1_000)). \(Bench.short(bytes)) "
                + "bytes a record over 64 MiB; 32",
            isMet: time <= limit && bytes <= 32)
    }

    private func besideAim(_ line: ResultLine) -> Aim? {
        guard let ratio = line.number("ratio_to_none"), let p99 = line.number("get_p99_microseconds_min"),
            let share = line.number("share_at_work_min")
        else { return nil }
        return Aim(
            text:
                "\(Bench.short(ratio)) of without; 0.6. p99 5 ms; best \(Bench.short(p99 / 1_000)). At work for \(Bench.short(share))",
            isMet: share < 0.95 ? nil : ratio >= 0.6 && p99 < 5_000)
    }

    private func importAim(_ line: ResultLine) -> Aim {
        let probe = line.number("ratio_to_probe")
        let ceiling = line.number("ratio_to_ceiling")
        let isProbeMet = probe.map { $0 >= 0.45 }
        let isCeilingMet = ceiling.map { $0 >= 1.2 }
        let isMet = isProbeMet == false || isCeilingMet == false ? false : isCeilingMet.flatMap { _ in isProbeMet }
        return Aim(
            text: "\(Bench.short(probe)) of the probe; 0.45. \(Bench.short(ceiling)) of the yardstick; 1.2",
            isMet: isMet)
    }

    private func sizeAim(_ line: ResultLine) -> Aim? {
        guard let protobuf = line.number("ratio_to_protobuf"), let encoded = line.number("ratio_to_encoded"),
            let others = line.number("other_bytes_per_record")
        else { return nil }
        return Aim(
            text: "\(Bench.short(protobuf)) of Protobuf; 0.98. Segments \(Bench.short(encoded)) of encoded; 1.05. "
                + "Others \(Bench.short(others)); 32",
            isMet: protobuf <= 0.98 && encoded <= 1.05 && others <= 32)
    }

    /// Three digits or so.
    private static func short(_ value: Double?) -> String {
        guard let value else { return "?" }
        if value >= 100 { return "\(Int(value.rounded()))" }
        if value >= 10 { return "\((value * 10).rounded() / 10)" }
        return "\((value * 1_000).rounded() / 1_000)"
    }
}

extension ResultLine {
    /// A member's number, if it is one.
    func number(_ name: String) -> Double? {
        switch self[name] {
        case .integer(let value): Double(value)
        case .number(let value, _): value
        default: nil
        }
    }
}

extension String {
    /// Without white space at its end.
    fileprivate var trimmed: String {
        var text = self[...]
        while text.last == " " { text.removeLast() }
        return String(text)
    }
}
