// `larder upgrade`.

import LarderFormat
import LarderStore

enum UpgradeCommand: Command {
    static let name = "upgrade"
    static let purpose = "bring the library to this version's file format"
    static let synopsis = ["upgrade"]
    static let details = """
        There is one file format so far, so there is nothing to do; a library of a newer one is refused with both
        numbers. Changes nothing.
        """
    static let examples = [
        (line: "larder upgrade", does: "says which format the library has"),
        (line: "larder upgrade --json", does: "the same for programs"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try expectNoArguments(context)
        let place = try context.place()
        _ = try onFiles("looking at \(place.library)") { try LogSource(library: place.library) }
        if context.isJSON {
            context.output.json {
                $0.member("format", Identity.formatVersion)
                $0.member("newest", Identity.formatVersion)
            }
        } else {
            context.output.line(
                "\(DisplayText.visible(place.library)) has format \(Identity.formatVersion), the newest there is")
        }
        return 0
    }
}
