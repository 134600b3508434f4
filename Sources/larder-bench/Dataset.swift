// The dataset: made-up titles in packed frames, which the C yardstick reads too.

import Glibc

/// Writes the dataset's file. The same count gives the same bytes.
///
///     u32 body length, then the body, all little-endian:
///     i64 id | u8 media type (0 movie, 1 tv) | i32 release date yyyymmdd | i32 vote count | f64 vote average |
///     original title | original name | overview | poster path
///
/// A string is a u16 byte count and UTF-8; 0xFFFF means none (original name only). Ids ascend in steps of 1 to 3.
struct Dataset {
    private var random = SplitMix(seed: 1)
    private let english = TextMaker(words: Words.english, syllables: Words.englishSyllables)
    private let korean = TextMaker(words: Words.korean, syllables: Words.koreanSyllables)
    private var bytes: [UInt8] = []
    private var id: Int64 = 1
    private static let alphanumerics = Array("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789".utf8)
    private static let flushByteCount = 4_194_304

    static func write(recordCount: Int, to path: String) throws(BenchError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw .system("open \(path)", code: errno) }
        defer { close(descriptor) }
        var dataset = Dataset()
        dataset.bytes.reserveCapacity(flushByteCount + 4_096)
        for _ in 0..<recordCount {
            dataset.appendRecord()
            if dataset.bytes.count >= flushByteCount { try dataset.flush(descriptor, path) }
        }
        try dataset.flush(descriptor, path)
        // Written back now, so that the disk is idle when the clock runs.
        if fdatasync(descriptor) != 0 { throw .system("fdatasync \(path)", code: errno) }
    }

    private mutating func flush(_ descriptor: Int32, _ path: String) throws(BenchError) {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes {
                Glibc.write(descriptor, $0.baseAddress.map { $0 + done }, $0.count - done)
            }
            if count > 0 { done += count } else if errno != EINTR { throw .system("write \(path)", code: errno) }
        }
        bytes.removeAll(keepingCapacity: true)
    }

    private mutating func appendRecord() {
        let start = bytes.count
        fixed(UInt32(0))
        id += Int64(random.within(1...3))
        let isKorean = random.fraction() < 0.4
        fixed(UInt64(bitPattern: id))
        bytes.append(random.fraction() < 0.25 ? 1 : 0)
        let date = random.within(1950...2025) * 10_000 + random.within(1...12) * 100 + random.within(1...28)
        fixed(UInt32(date))
        // A Pareto distribution of shape 0.7: many titles with few votes, few with many.
        let votes = pow(1 - random.fraction(), -1 / 0.7)
        fixed(UInt32(votes < 1e15 ? Int(votes) % 40_000 : 39_999))
        fixed((Double(random.within(0...10_000)) / 1_000).bitPattern)
        text(12...40, isKorean)
        if random.fraction() < 0.25 { text(8...30, isKorean) } else { fixed(UInt16.max) }
        text(120...500, isKorean)
        fixed(UInt16(32))
        bytes.append(0x2F)
        for _ in 0..<27 { bytes.append(Dataset.alphanumerics[random.below(Dataset.alphanumerics.count)]) }
        bytes.append(contentsOf: ".jpg".utf8)
        patch(UInt32(bytes.count - start - 4), at: start)
    }

    private mutating func text(_ limit: ClosedRange<Int>, _ isKorean: Bool) {
        let start = bytes.count
        fixed(UInt16(0))
        let maker = isKorean ? korean : english
        maker.append(to: &bytes, limit: random.within(limit), &random)
        patch(UInt16(bytes.count - start - 2), at: start)
    }

    private mutating func fixed<T: FixedWidthInteger>(_ value: T) {
        withUnsafeBytes(of: value.littleEndian) { bytes.append(contentsOf: $0) }
    }

    private mutating func patch<T: FixedWidthInteger>(_ value: T, at offset: Int) {
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: value.littleEndian, toByteOffset: offset, as: T.self) }
    }
}
