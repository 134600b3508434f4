// `larder status`.

import LarderFormat
import LarderWire

enum StatusCommand: Command {
    static let name = "status"
    static let purpose = "show the host, its library, connections and plugins"
    static let synopsis = ["status [--wait]"]
    static let options = [OptionSpec("wait", "wait for a host that opens its library")]
    static let details = """
        A host that opens a large library, after a crash for example, reads its log first. Until that is done its state
        is recovering, with how far it is; nothing else of the library is known, and other commands wait. With --wait so
        does this one.
        """
    static let examples = [
        (line: "larder status", does: "shows library and socket, how many records there are, and who is connected"),
        (line: "larder status --json | jq -r .socket", does: "prints the socket that a plugin connects to"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try expectNoArguments(context)
        let waits = context.options.has("wait")
        var opening: StatusIs?
        do {
            let session = try context.session { status in
                opening = status
                return waits
            }
            let status = try attempt("asking for the status") { try session.client.status() }
            show(status, try session.kinds(), context)
        } catch {
            guard !waits, let opening else { throw error }
            show(opening, Kinds([]), context)
        }
        return 0
    }

    private static func show(_ status: StatusIs, _ kinds: Kinds, _ context: Context) {
        if context.isJSON {
            context.output.json { StatusJSON.write(status, kinds, into: &$0) }
        } else {
            print(status, kinds, context.output)
        }
    }

    private static func state(_ status: StatusIs) -> String {
        // Its reason says it again.
        if status.state == "recovering", !status.reason.isEmpty { return status.reason }
        return status.state + (status.reason.isEmpty ? "" : ": \(status.reason)")
    }

    private static func log(_ status: StatusIs) -> String {
        let text = "\(Formats.bytes(status.logByteCount)) in \(Formats.count(status.segments, "segment"))"
        let reclaimable = status.reclaimableByteCount
        return reclaimable == 0
            ? text : text + ", of which larder compact could free up to \(Formats.bytes(reclaimable))"
    }

    private static func print(_ status: StatusIs, _ kinds: Kinds, _ output: Output) {
        let mode = status.mode == .serve ? "larder serve" : "started by a command, stops when idle"
        let records = status.records.filter { $0.count > 0 }.map {
            "\(Formats.count($0.count)) \(kinds[$0.kind]?.name ?? "kind \($0.kind)")"
        }
        var facts = [
            ("state", state(status)),
            ("host", "larder \(status.version), process \(status.pid), \(mode)"),
            ("since", Formats.localTime(milliseconds: status.started)),
            ("library", status.library), ("socket", status.socket),
        ]
        if status.state != "recovering" {
            facts += [
                ("records", records.isEmpty ? "none" : records.joined(separator: ", ")),
                ("log", log(status)),
                ("cursor", "\(Cursor(epoch: status.epoch, seq: status.lastSeq))"),
            ]
        }
        if status.floor > 1 { facts.append(("floor", "\(status.floor)")) }
        for (name, value) in facts {
            let gap = String(repeating: " ", count: 9 - name.count)
            output.line(output.styled(name, .bold) + gap + DisplayText.visible(value))
        }
        var sessions = Table(
            [
                .init("CONNECTION", .trailing), .init("PROGRAM", flexible: true), .init("PROCESS", .trailing),
                .init("ROLES"), .init("SUBSCRIPTIONS", .trailing), .init("LAG", .trailing),
            ], width: output.width)
        for session in status.sessions {
            sessions.add([
                "\(session.id)", "\(session.name) \(session.version)", "\(session.pid)",
                StatusJSON.roleNames(session.roles).joined(separator: ", "), "\(session.subscriptions)",
                Formats.count(Int(clamping: session.lag)),
            ])
        }
        print(&sessions, output)
        var plugins = Table(
            [
                .init("PLUGIN"), .init("STATE"), .init("PROCESS", .trailing), .init("RESTARTS", .trailing),
                .init("LAST ERROR", flexible: true),
            ], width: output.width)
        for plugin in status.plugins {
            plugins.add([
                plugin.name, plugin.state, plugin.pid == 0 ? "" : "\(plugin.pid)", "\(plugin.restarts)",
                plugin.lastError,
            ])
        }
        print(&plugins, output)
    }

    private static func print(_ table: inout Table, _ output: Output) {
        guard !table.rows.isEmpty else { return }
        output.line("")
        table.print(to: output, withHeading: true)
    }
}
