// What the doctor found.

/// One thing that was looked at.
struct Finding: Equatable {
    enum Level: String {
        case ok, warn, bad

        /// The exit code where this is the worst.
        var exitCode: Int32 {
            switch self {
            case .ok: 0
            case .warn: 1
            case .bad: 2
            }
        }
    }

    /// A word for programs, such as `socket`.
    let name: String
    let level: Level
    /// What is so, and why it matters.
    let reason: String
    /// What to do; "" where there is nothing to do.
    let fix: String

    init(_ name: String, _ level: Level, _ reason: String, fix: String = "") {
        self.name = name
        self.level = level
        self.reason = reason
        self.fix = fix
    }

    static func exitCode(_ findings: [Finding]) -> Int32 { findings.map(\.level.exitCode).max() ?? 0 }
}
