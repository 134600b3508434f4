// `larder doctor`.

import LarderFormat

enum DoctorCommand: Command {
    static let name = "doctor"
    static let purpose = "look for what could be wrong, and say what to do"
    static let synopsis = ["doctor"]
    static let details = """
        Looks at the library's files and its disk, the lock, the clock, the host and its socket, the plugins and what
        they need, and the system's limits. Changes nothing and starts no host.
        Exit codes: 0 all is well, 1 something to know, 2 something is wrong.
        """
    static let examples = [
        (line: "larder doctor", does: "lists what was looked at, what is wrong, and the remedy"),
        (line: "larder doctor --json | jq -r 'select(.level != \"ok\") | .fix'", does: "prints the remedies only"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try expectNoArguments(context)
        let place = try context.place()
        let findings = LibraryChecks(place: place).run() + HostChecks(place: place).run() + SystemChecks().run()
        let output = context.output
        let width = findings.map(\.name.count).max() ?? 0
        for finding in findings {
            if context.isJSON {
                output.json {
                    $0.member("check", finding.name)
                    $0.member("level", finding.level.rawValue)
                    $0.member("reason", finding.reason)
                    if !finding.fix.isEmpty { $0.member("fix", finding.fix) }
                }
                continue
            }
            let style: Output.Style =
                switch finding.level {
                case .ok: .green
                case .warn: .yellow
                case .bad: .red
                }
            let level = finding.level.rawValue + String(repeating: " ", count: 4 - finding.level.rawValue.count)
            let name = finding.name + String(repeating: " ", count: width - finding.name.count)
            output.line("\(output.styled(level, style))  \(name)  \(DisplayText.visible(finding.reason))")
            if !finding.fix.isEmpty {
                output.line(String(repeating: " ", count: width + 8) + "→ " + DisplayText.visible(finding.fix))
            }
        }
        return Finding.exitCode(findings)
    }
}
