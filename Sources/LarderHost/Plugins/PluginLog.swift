// A plugin's log: its output and errors line by line, and what the host has to say about it.
//
//     2025-03-31T08:00:00.000Z out  ready to import
//     2025-03-31T08:00:01.000Z err  no such page
//     2025-03-31T08:00:02.000Z host crashed: exit status 1; starts again in 1043 ms

import LarderFormat

/// Where a line comes from.
enum PluginLogSource: String, Sendable {
    case output = "out "
    case error = "err "
    case host
}

/// Writes the log of one plugin and remembers its last errors. Loop thread; memory is bounded whatever the plugin
/// writes, and a disk that takes nothing costs lines, not time.
final class PluginLog {
    static let byteCountMax = 1_048_576
    /// Longer lines are broken.
    static let lineByteCountMax = 4_096
    static let rememberedLineCount = 20
    static let rememberedByteCount = 400

    private let file: RotatingFile
    private let clock: () -> Int64
    private var output = LineBuffer(byteCountMax: PluginLog.lineByteCountMax)
    private var errors = LineBuffer(byteCountMax: PluginLog.lineByteCountMax)

    /// The last lines of the error output, oldest first, without control characters, shortened.
    private(set) var lastErrorLines: [String] = []

    /// `clock`: milliseconds since 1970.
    init(path: String, byteCountMax: Int = PluginLog.byteCountMax, clock: @escaping () -> Int64) {
        file = RotatingFile(path: path, byteCountMax: byteCountMax)
        self.clock = clock
    }

    /// Takes bytes as they come; a line is written when its end is there.
    func take(_ bytes: UnsafeRawBufferPointer, from source: PluginLogSource) {
        var written: [UInt8] = []
        let stamp = stamp(source)
        let emit: ([UInt8]) -> Void = { [self] line in
            if source == .error { remember(line) }
            written += stamp
            written += line
            written.append(0x0A)
        }
        if source == .error { errors.take(bytes, emit) } else { output.take(bytes, emit) }
        if !written.isEmpty { file.append(written) }
    }

    /// Writes what has no line end, when the process has ended.
    func flush() {
        for (line, source) in [(output.flush(), PluginLogSource.output), (errors.flush(), .error)] {
            guard let line else { continue }
            if source == .error { remember(line) }
            file.append(stamp(source) + line + [0x0A])
        }
    }

    func note(_ line: String) { file.append(stamp(.host) + Array(line.utf8) + [0x0A]) }

    func forgetErrorLines() { lastErrorLines = [] }

    func close() { file.closeFile() }

    private func stamp(_ source: PluginLogSource) -> [UInt8] {
        Array("\(TimeText.text(milliseconds: clock())) \(source.rawValue) ".utf8)
    }

    private func remember(_ line: [UInt8]) {
        let shown = line.prefix(PluginLog.rememberedByteCount).map { $0 < 0x20 || $0 == 0x7F ? 0x20 : $0 }
        if lastErrorLines.count == PluginLog.rememberedLineCount { lastErrorLines.removeFirst() }
        lastErrorLines.append(String(decoding: shown, as: UTF8.self))
    }
}

/// Cuts bytes into lines of a bounded length.
struct LineBuffer {
    private let byteCountMax: Int
    private var pending: [UInt8] = []

    init(byteCountMax: Int) { self.byteCountMax = byteCountMax }

    /// Gives out every line that is complete, or as long as a line may be, without its end (LF or CRLF).
    mutating func take(_ bytes: UnsafeRawBufferPointer, _ emit: ([UInt8]) -> Void) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let room = byteCountMax - pending.count
            if let end = rest.prefix(room + 1).firstIndex(of: 0x0A) {
                pending += rest[..<end]
                if pending.last == 0x0D { pending.removeLast() }
                rest = rest[(end + 1)...]
            } else if rest.count > room {
                pending += rest.prefix(room)
                rest = rest.dropFirst(room)
            } else {
                pending += rest
                return
            }
            emit(pending)
            pending.removeAll(keepingCapacity: true)
        }
    }

    /// The line that has no end yet, if any.
    mutating func flush() -> [UInt8]? {
        if pending.isEmpty { return nil }
        defer { pending = [] }
        return pending
    }
}
