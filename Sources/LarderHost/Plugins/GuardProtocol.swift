// What the host and a guard say to each other.
//
//     host ──life line──▶ guard    one byte: kill everything now; the end: the host has gone
//     host ◀───status──── guard    records of 8 bytes, little-endian:
//
//     0   4  u32 what: 1 spawned, 2 not spawned, 3 exited, 4 killed, 5 given up
//     4   4  i32 value: process id, errno, exit status, signal, 0

/// What a guard tells.
enum GuardReport: Equatable, Sendable {
    static let byteCount = 8

    case spawned(processID: Int32)
    /// It executed nothing; nothing else follows.
    case notSpawned(errorCode: Int32)
    case exited(status: Int32)
    case killed(signal: Int32)
    /// Something could not be ended within the time; the guard ends nevertheless.
    case gaveUp

    init?(_ bytes: some Sequence<UInt8>) {
        var word: UInt64 = 0
        for (index, byte) in bytes.prefix(8).enumerated() { word |= UInt64(byte) << (8 * UInt64(index)) }
        let value = Int32(truncatingIfNeeded: word >> 32)
        switch UInt32(truncatingIfNeeded: word) {
        case 1: self = .spawned(processID: value)
        case 2: self = .notSpawned(errorCode: value)
        case 3: self = .exited(status: value)
        case 4: self = .killed(signal: value)
        case 5: self = .gaveUp
        default: return nil
        }
    }

    /// The record; the first byte is the lowest of the word.
    var word: UInt64 {
        let (what, value): (UInt64, Int32) =
            switch self {
            case .spawned(let processID): (1, processID)
            case .notSpawned(let errorCode): (2, errorCode)
            case .exited(let status): (3, status)
            case .killed(let signal): (4, signal)
            case .gaveUp: (5, 0)
            }
        return (what | UInt64(UInt32(bitPattern: value)) << 32).littleEndian
    }
}

/// The byte that asks a guard to kill everything now.
let guardKillByte: UInt8 = 0x4B

/// The arguments of `larder guard`.
struct GuardArguments: Equatable, Sendable {
    /// Where the host's end closes; read.
    var lifeLine: Int32 = -1
    /// Where reports go; -1: nowhere.
    var status: Int32 = -1
    /// What the program inherits besides 0, 1 and 2; -1: nothing.
    var inherited: Int32 = -1
    /// Limit of open descriptors; 0: as it is.
    var openFilesMax: UInt64 = 0
    /// The program and its arguments; not empty.
    var command: [String] = []

    init(lifeLine: Int32, status: Int32, inherited: Int32, openFilesMax: UInt64 = 0, command: [String]) {
        self.lifeLine = lifeLine
        self.status = status
        self.inherited = inherited
        self.openFilesMax = openFilesMax
        self.command = command
    }

    /// What stands behind `larder guard`; nil if it is not for a guard.
    init?(_ arguments: [String]) {
        guard let end = arguments.firstIndex(of: "--") else { return nil }
        let options = arguments[..<end]
        command = Array(arguments[(end + 1)...])
        guard !command.isEmpty, options.count.isMultiple(of: 2) else { return nil }
        for index in stride(from: 0, to: options.count, by: 2) {
            guard let value = Int32(options[index + 1]), value >= 0 else { return nil }
            switch options[index] {
            case "--life-line": lifeLine = value
            case "--status": status = value
            case "--inherited": inherited = value
            case "--open-files": openFilesMax = UInt64(value)
            default: return nil
            }
        }
        if lifeLine < 3 { return nil }
    }

    /// As `larder guard` takes them.
    var arguments: [String] {
        var words = ["--life-line", String(lifeLine)]
        if status >= 0 { words += ["--status", String(status)] }
        if inherited >= 0 { words += ["--inherited", String(inherited)] }
        if openFilesMax > 0 { words += ["--open-files", String(openFilesMax)] }
        return words + ["--"] + command
    }
}
