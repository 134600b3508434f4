// Targets of text that people and other programs write: conditions, JSON, lines, tokens, dates, numbers.

import LarderFormat
import LarderStore

/// A condition, then behind a zero byte a kind and a record that it is tested on.
func fuzzCondition(_ bytes: UnsafeRawBufferPointer) {
    let end = bytes.firstIndex(of: 0) ?? bytes.count
    let (text, rest) = bytes.split(end)
    guard let condition = try? Condition(text.string, schemas: FuzzKinds.schemas) else { return }
    let (head, record) = UnsafeRawBufferPointer(rebasing: rest.dropFirst()).split(1)
    for schema in FuzzKinds.schemas {
        let samples = [record] + (head.isEmpty ? [] : [UnsafeRawBufferPointer(rebasing: record.prefix(Int(head[0])))])
        for sample in samples {
            _ = condition.matches(
                ConditionSubject(
                    kind: schema.kind.number, seq: 9, firstSeq: 3, savedAt: 1_700_000_000_000,
                    changedAt: 1_700_000_001_000, origin: 2, record: sample))
        }
    }
}

func fuzzJSON(_ bytes: UnsafeRawBufferPointer) {
    var reader = JSONReader(bytes)
    do throws(JSONError) { while try reader.next() != .end {} } catch { _ = "\(error)" }
    let isSound = (try? JSONValue(parsing: bytes)) != nil
    var other = JSONReader(bytes)
    var skips = true
    do throws(JSONError) {
        try other.skipValue()
        try other.finish()
    } catch { skips = false }
    must(isSound == skips, "a JSON text is sound (\(isSound)) when kept, and not when skipped (\(skips))")
}

/// Lines of an import; what is taken must be a record.
func fuzzLine(_ bytes: UnsafeRawBufferPointer) {
    _ = InputShape.sniff(bytes)
    guard
        var encoder = try? LineEncoder(
            kinds: FuzzKinds.all, defaultKind: "thing", presets: [(field: "part", text: "one")])
    else { return }
    var splitter = LineSplitter(limit: 4096)
    let (first, second) = bytes.split(bytes.count / 2)
    func take(_ number: Int, _ line: LineSplitter.Line) {
        guard case .text(let text) = line, case .record(let kind) = encoder.encode(text) else { return }
        let schema = FuzzKinds.schemas.first { $0.kind.number == kind }
        encoder.withRecord { record in
            let isRecord = schema.map { (try? $0.scan(record, exempt: FieldSet([1]))) != nil } ?? false
            must(isRecord, "a line gave what is no record: \(text.string)")
        }
    }
    splitter.feed(first, take)
    splitter.feed(second, take)
    splitter.finish(take)
}

/// Page tokens.
func fuzzToken(_ bytes: UnsafeRawBufferPointer) {
    if let token = PageToken(bytes) {
        must(token.encoded.elementsEqual(bytes), "a page token is written with other bytes")
    }
    if let token = ScanToken(Array(bytes)) {
        must(token.encoded.elementsEqual(bytes), "a scan token is written with other bytes")
    }
}

/// ISBNs, dates, times, numbers, keys, names, folding, and what is shown to people.
func fuzzText(_ bytes: UnsafeRawBufferPointer) {
    let text = bytes.string
    if let isbn = ISBN(bytes) {
        must((9_780_000_000_000...9_799_999_999_999).contains(isbn.number), "ISBN \(isbn.number)")
    }
    if let date = PartialDate(text: text) {
        must(PartialDate(packed: date.packed) == date, "a date is packed as another: \(text)")
    }
    _ = PartialDate(lenient: text)
    for isStrict in [true, false] {
        if let time = TimeText.milliseconds(text, secondsRequired: isStrict) {
            must(TimeText.milliseconds(TimeText.text(milliseconds: time)) == time, "a time is another: \(text)")
        }
    }
    if let uuid = UUIDBytes(text: text) { _ = "\(uuid)" }
    _ = try? RecordKey(text: text) { name in FuzzKinds.all.first { $0.name == name } }
    _ = try? Number(jsonText: text)
    for kind in FuzzKinds.all { for field in kind.fields { _ = try? Value(plainText: text, field) } }
    let once = folded(bytes)
    must(folded(once.withUnsafeBytes { $0.string }) == once || badUTF8(bytes), "folding twice is not folding once")
    must(DisplayText.width(DisplayText.truncated(text, to: 20)) <= 20, "text is wider than it was cut to")
    _ = DisplayText.padded(text, to: 10)
    _ = SearchQuery(text)
}

private func badUTF8(_ bytes: UnsafeRawBufferPointer) -> Bool { String(validating: bytes, as: UTF8.self) == nil }
