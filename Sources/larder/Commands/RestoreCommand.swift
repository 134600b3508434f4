// `larder restore`.

import LarderFormat
import LarderStore

enum RestoreCommand: Command {
    static let name = "restore"
    static let purpose = "make a library of a backup"
    static let synopsis = ["restore BACKUP TO"]
    static let details = """
        Checks the backup, writes its log to TO, which must not hold a library, and reads it all back. The library keeps
        its id, its seqs and times; it gets a new epoch, since changes made after the backup are gone: programs with a
        cursor of before are told that it expired.
        Exit codes: 0 done, 1 the backup is damaged (then larder --library BACKUP salvage TO may help), 2 it could not be
        done.
        """
    static let examples = [
        (line: "larder restore /mnt/disk/larder ~/library", does: "brings the library back"),
        (line: "larder restore /mnt/disk/larder ~/library --json", does: "the same, told as JSON"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        let words = context.options.arguments
        guard words.count == 2 else { throw misused("takes a BACKUP and a directory TO") }
        let report: VerifyReport
        do {
            report = try LogSource.restore(backup: words[0], to: words[1])
        } catch let error {
            let isDamaged =
                switch error {
                case .notABackup, .unsound, .damaged: true
                default: false
                }
            throw Failure(
                "restoring \(DisplayText.visible(words[0]))", DisplayText.visible("\(error)"),
                isDamaged ? "larder backup \(DisplayText.visible(words[0])) --check names all that is wrong" : "",
                exitCode: isDamaged ? 1 : 2)
        }
        if context.isJSON {
            context.output.json { VerifyCommand.write(report, into: &$0) }
        } else {
            context.output.line(
                "restored \(Formats.count(report.recordCount, "record")), through seq \(report.lastSeq), to "
                    + DisplayText.visible(words[1]))
        }
        return 0
    }
}
