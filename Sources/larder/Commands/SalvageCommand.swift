// `larder salvage`.

import LarderFormat
import LarderStore

enum SalvageCommand: Command {
    static let name = "salvage"
    static let purpose = "bring what can be read of a damaged library into a new one"
    static let synopsis = ["salvage TO [--epoch HEX]"]
    static let options = [
        OptionSpec("epoch", "HEX", "whose blocks are meant, where the identity is lost and they name several")
    ]
    static let details = """
        Reads everything of the log that checks, also behind damage and without the file `larder`, and writes it to TO,
        which must not hold a library. Seqs, times, origins and kinds stay; the new library has a new epoch, so cursors
        of before are refused. What is lost is named, here and in the new log. --library may also be a backup.
        The damaged library is not changed; plugins and their cursors are not taken over.
        Exit codes: 0 nothing was lost, 1 something was, 2 nothing could be done.
        """
    static let examples = [
        (line: "larder salvage ~/library-new", does: "saves what can be read of the library"),
        (line: "larder --library /old salvage ~/new --json", does: "the same for another library, told as JSON"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        guard let target = context.options.arguments.first, context.options.arguments.count == 1 else {
            throw misused("takes one directory TO")
        }
        var epoch: UInt64?
        if let text = context.options.value("epoch") {
            guard let value = UInt64(text, radix: 16) else { throw misused("--epoch takes 16 hexadecimal digits") }
            epoch = value
        }
        let place = try context.place()
        let report = try onFiles("salvaging \(place.library)") { () throws in
            if let (source, _) = try? LogSource.backup(place.library) {
                return try source.salvage(to: target, now: Clock.wall)
            }
            let (source, loss) = try LogSource.damaged(library: place.library, epoch: epoch)
            return try source.salvage(to: target, identityLoss: loss, now: Clock.wall)
        }
        LogText.show(report.damages, count: report.damages.count, report.tail, context)
        show(report, target, context)
        return report.lostSomething ? 1 : 0
    }

    private static func show(_ report: SalvageReport, _ target: String, _ context: Context) {
        let output = context.output
        if context.isJSON {
            return output.json {
                $0.name("done")
                $0.beginObject()
                $0.member("to", target)
                $0.member("epoch", hexadecimal(report.epoch))
                $0.member("entries", report.entryCount)
                $0.member("bytes", report.byteCount)
                $0.member("damages", report.damages.count)
                if !report.identityLoss.isEmpty { $0.member("identity", report.identityLoss) }
                $0.endObject()
            }
        }
        if !report.identityLoss.isEmpty {
            output.line(
                output.styled("damage", .red) + "  the identity is lost, the new library has another id: "
                    + DisplayText.visible(report.identityLoss))
        }
        output.line(
            "salvaged \(Formats.count(report.entryCount, "entry", "entries")), \(Formats.bytes(report.byteCount)), to "
                + DisplayText.visible(target))
    }
}
