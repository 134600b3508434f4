// `larder backup`.

import LarderClient
import LarderFormat
import LarderStore

enum BackupCommand: Command {
    static let name = "backup"
    static let purpose = "make or renew a backup, also while a host is at work"
    static let synopsis = ["backup DIR [--copy] [--damaged]", "backup DIR --check"]
    static let options = [
        OptionSpec("check", "rehearse a restore of DIR: check every file and every entry, change nothing"),
        OptionSpec("copy", "copy all files; links share one rotten disk block with the library"),
        OptionSpec("damaged", "take a damaged log as it is"),
    ]
    static let details = """
        Takes everything that was answered before the command began: a prefix of the log, whole blocks only. Files that
        no longer change are hard links where DIR is on the same file system, else copies; what is there and equal is not
        written again. DIR always holds the old backup or the new one, never half of one.
        The library's files are read and not changed. A damaged library is refused, so that no damage replaces a backup.
        A backup is no library: larder restore makes one of it.
        Exit codes: 0 done or sound, 1 the library or the backup is damaged, 2 it could not be done.
        """
    static let examples = [
        (line: "larder backup /mnt/disk/larder", does: "makes a backup, or brings it up to date"),
        (line: "larder backup /mnt/disk/larder --check", does: "says whether a restore would bring all of it back"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        guard let directory = context.options.arguments.first, context.options.arguments.count == 1 else {
            throw misused("takes one directory DIR")
        }
        return context.options.has("check") ? try check(directory, context) : try make(directory, context)
    }

    private static func make(_ directory: String, _ context: Context) throws -> Int32 {
        let place = try context.place()
        var options = BackupOptions()
        options.copiesAll = context.options.has("copy")
        options.takesDamaged = context.options.has("damaged")
        options.durableSeq = durableSeq(place)
        let report: BackupReport
        do {
            report = try onFiles("backing up \(place.library)") {
                try LogSource(library: place.library).backup(to: directory, options: options, now: Clock.wall)
            }
        } catch let failure as Failure {
            var failure = failure
            if failure.advice.hasPrefix("larder verify") { failure.exitCode = 1 }
            throw failure
        }
        show(report, directory, context)
        return report.verified.isSound ? 0 : 1
    }

    /// What the library's host says is durable; nil where none answers, or it does not know yet.
    private static func durableSeq(_ place: Place) -> UInt64? {
        guard let client = try? Session.connect(place, whileRecovering: { _ in false }) else { return nil }
        defer { client.close() }
        guard let status = try? client.status(), status.library == place.library else { return nil }
        return status.lastSeq
    }

    private static func show(_ report: BackupReport, _ directory: String, _ context: Context) {
        let output = context.output
        if context.isJSON {
            return output.json {
                $0.name("done")
                $0.beginObject()
                $0.member("to", directory)
                $0.member("last_seq", report.manifest.lastSeq)
                $0.member("segments", report.manifest.segments.count)
                $0.member("bytes", report.byteCount)
                $0.member("linked", report.linkedCount)
                $0.member("copied", report.copiedCount)
                $0.member("copied_bytes", report.copiedByteCount)
                $0.member("kept", report.keptCount)
                $0.member("damages", report.verified.damageCount)
                $0.endObject()
            }
        }
        let counts = [
            (report.linkedCount, "linked"), (report.copiedCount, "copied"), (report.keptCount, "as it was"),
        ].filter { $0.0 > 0 }.map { "\(Formats.count($0.0, "segment")) \($0.1)" }
        output.line(
            "backed up everything through seq \(report.manifest.lastSeq), \(Formats.bytes(report.byteCount)), to "
                + DisplayText.visible(directory) + (counts.isEmpty ? "" : ": " + counts.joined(separator: ", ")))
        if !report.verified.isSound {
            output.line("it has the library's damage: larder backup \(DisplayText.visible(directory)) --check names it")
        }
    }

    private static func check(_ directory: String, _ context: Context) throws -> Int32 {
        let check = try onFiles("checking \(directory)") { try LogSource.checkBackup(directory) }
        let output = context.output
        for fault in check.faults {
            if context.isJSON {
                output.json { $0.member("fault", fault) }
            } else {
                output.line(output.styled("fault", .red) + "   " + DisplayText.visible(fault))
            }
        }
        if let verified = check.verified { VerifyCommand.show(verified, context) }
        if !context.isJSON {
            let made = Formats.localTime(milliseconds: check.manifest.madeAt)
            output.line("made \(made), through seq \(check.manifest.lastSeq)")
        }
        return check.isSound ? 0 : 1
    }
}
