// The files of an import, or standard input.

import Glibc
import LarderFormat

/// One input. Opened at once, so that a name that is wrong is told before anything is imported.
final class ImportSource {
    static let sampleByteCount = 65_536
    private static let chunkByteCount = 262_144

    /// As it was given; `-` for standard input.
    let name: String
    let descriptor: Int32
    /// nil where it is not known: a pipe.
    let byteCount: Int?
    /// Bytes read so far, without those that only the sample has read.
    private(set) var readByteCount = 0
    private var sample: [UInt8] = []
    private var isSampleTaken = false

    var isStandardInput: Bool { name == "-" }
    /// For messages.
    var shownName: String { isStandardInput ? "standard input" : name }

    init(_ name: String) throws(Failure) {
        self.name = name
        descriptor = name == "-" ? STDIN_FILENO : open(name, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw Failure("reading \(name)", errorText(errno), "nothing was imported")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Failure("reading \(name)", errorText(errno)) }
        if status.st_mode & S_IFMT == S_IFDIR {
            throw Failure("reading \(name)", "it is a directory", "name the files in it")
        }
        byteCount = status.st_mode & S_IFMT == S_IFREG ? Int(status.st_size) : nil
    }

    deinit { if !isStandardInput { close(descriptor) } }

    /// The first bytes, which `read` gives again.
    func peek() throws(Failure) -> [UInt8] {
        var room = [UInt8](repeating: 0, count: ImportSource.sampleByteCount)
        while sample.count < ImportSource.sampleByteCount {
            guard let count = try fill(&room), count > 0 else { break }
            sample += room[..<count]
        }
        return sample
    }

    /// Hands out the next bytes; false at the end. An interrupt gives nothing and is no end.
    func read(into room: inout [UInt8], _ body: (UnsafeRawBufferPointer) throws -> Void) throws -> Bool {
        if !isSampleTaken {
            isSampleTaken = true
            if !sample.isEmpty {
                readByteCount += sample.count
                try sample.withUnsafeBytes(body)
                sample = []
                return true
            }
        }
        if room.count < ImportSource.chunkByteCount { room = [UInt8](repeating: 0, count: ImportSource.chunkByteCount) }
        guard let count = try fill(&room) else { return true }
        if count == 0 { return false }
        readByteCount += count
        try room.withUnsafeBytes { try body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
        return true
    }

    /// - Returns: the byte count, 0 at the end; nil after an interrupt.
    private func fill(_ room: inout [UInt8]) throws(Failure) -> Int? {
        while true {
            if byteCount == nil {
                var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
                if poll(&ready, 1, 200) == 0 {
                    if Interrupt.isPending { return nil }
                    continue
                }
            }
            let count = Glibc.read(descriptor, &room, room.count)
            if count >= 0 { return count }
            guard errno == EINTR || errno == EAGAIN else { throw Failure("reading \(shownName)", errorText(errno)) }
        }
    }
}

/// What an input looks like, so that it goes to who can read it.
struct ImportSample {
    let shape: InputShape
    /// Names in the object that is the whole input, or nil.
    let objectKeys: [String]?
    /// Names in the object that is the first line, or nil.
    let lineKeys: [String]?

    init(_ bytes: [UInt8]) {
        (shape, objectKeys, lineKeys) = bytes.withUnsafeBytes { sample in
            let shape = InputShape.sniff(sample)
            var objectKeys: [String]?
            if case .jsonObject(let keys) = shape { objectKeys = keys }
            return (shape, objectKeys, ImportSample.firstLineKeys(sample))
        }
    }

    private static func firstLineKeys(_ sample: UnsafeRawBufferPointer) -> [String]? {
        for line in sample.split(separator: 0x0A, omittingEmptySubsequences: true) {
            let line = UnsafeRawBufferPointer(rebasing: line)
            switch InputShape.sniff(line) {
            case .empty: continue
            // A first line that the sample cuts off has keys too, as far as it goes.
            case .jsonObject(let keys): return keys
            case .jsonLines, .jsonArray, .other: return nil
            }
        }
        return nil
    }

    /// One object on each line, or just one line.
    var isJSONLines: Bool {
        switch shape {
        case .jsonLines: true
        // One line that is an object is a file of lines with one line; one that goes over several lines is not.
        case .jsonObject: lineKeys != nil && lineKeys == objectKeys
        case .jsonArray, .empty, .other: false
        }
    }

    var shapeName: String {
        switch shape {
        case .jsonLines: "JSON lines"
        case .jsonObject: "one JSON object"
        case .jsonArray: "one JSON array"
        case .empty: "empty"
        case .other: "no JSON"
        }
    }
}
