// How long what was changed or deleted is kept.

/// The value of --keep-history.
enum HistoryLimit: Equatable {
    case milliseconds(Int64)
    case all
    case none

    static let option = OptionSpec(
        "keep-history", "DAYS", "keep what was changed or deleted for so many days; or: all, none")
    private static let dayMilliseconds: Int64 = 86_400_000
    private static let dayCountMax = 1_000_000

    /// Nil where the option was not given.
    init?(_ options: Options, command: String) throws(Failure) {
        guard let text = options.value(HistoryLimit.option.name) else { return nil }
        switch text {
        case "all": self = .all
        case "none": self = .none
        default:
            guard let days = Int(text), (0...HistoryLimit.dayCountMax).contains(days) else {
                throw .usage(
                    "--keep-history \(text)", "expected a whole number of days, or all, or none",
                    "see larder \(command) --help")
            }
            self = .milliseconds(Int64(days) * HistoryLimit.dayMilliseconds)
        }
    }

    /// As COMPACT says it.
    func since(now: Int64) -> Int64 {
        switch self {
        case .all: .min
        case .none: .max
        // 0 would leave it to the host.
        case .milliseconds(let duration): max(now &- duration, 1)
        }
    }

    /// As the host is told.
    var duration: Int64 {
        switch self {
        case .all: .max
        case .none: 0
        case .milliseconds(let duration): duration
        }
    }
}
