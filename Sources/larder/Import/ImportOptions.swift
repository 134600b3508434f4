// What `import` was told.

import LarderFormat
import LarderWire

struct ImportOptions {
    var kind: String?
    /// Values for fields that a row leaves absent.
    var presets: [(field: String, text: String)] = []
    var mode = SaveMode.merge
    var isDryRun = false
    /// The owner's own fields are written, too.
    var isPersonal = false
    /// `jsonl`, or an importer's name; nil: look at the input.
    var format: String?

    static let modes: [(name: String, mode: SaveMode)] = [
        ("insert", .insert), ("replace", .replace), ("merge", .merge), ("fill", .fill),
    ]

    init() {}

    init(_ options: Options) throws(Failure) {
        kind = options.value("kind")
        isDryRun = options.has("dry-run")
        isPersonal = options.has("personal")
        format = options.value("format")
        for text in options.all("set") {
            guard let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw ImportCommand.misused("--set takes name=value, not “\(text)”")
            }
            presets.append((String(text[..<equals]), String(text[text.index(after: equals)...])))
        }
        if let text = options.value("mode") {
            guard let found = ImportOptions.modes.first(where: { $0.name == text }) else {
                throw ImportCommand.misused("--mode is insert, replace, merge or fill, not “\(text)”")
            }
            mode = found.mode
        }
    }

    var modeName: String { ImportOptions.modes.first { $0.mode == mode }?.name ?? "merge" }

    /// What an importer finds in LARDER_IMPORT_OPTIONS.
    var json: String {
        var json = JSONWriter()
        json.beginObject()
        json.member("mode", modeName)
        json.member("dry_run", isDryRun)
        json.member("personal", isPersonal)
        if let kind { json.member("kind", kind) }
        json.name("set")
        json.beginObject()
        for (index, preset) in presets.enumerated()
        where !presets[(index + 1)...].contains(where: { $0.field == preset.field }) {
            json.member(preset.field, preset.text)
        }
        json.endObject()
        json.endObject()
        return json.text
    }
}
