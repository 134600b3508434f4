// `larder edit`.

import LarderFormat

enum EditCommand: Command {
    static let name = "edit"
    static let purpose = "change one record in the editor"
    static let synopsis = ["edit KEY [--dry-run]", "edit KIND VALUE…"]
    static let options = [PersonalEdit.dryRun, Confirmation.needless]
    static let details = """
        Opens $VISUAL or $EDITOR (else vi) on a form of all fields, with their types and what they take. What can't be
        saved comes back with the reason at its top. Where the record was changed in the meantime the form comes back
        with both changes in it, and nothing is saved until it is closed once more.
        To give up, empty the file; leaving it as it is changes nothing.
        """
    static let examples = [
        (line: "larder edit title:tmdb/movie/603", does: "opens one film"),
        (line: "VISUAL=\"code --wait\" larder edit book isbn 9788937460449", does: "opens a book in another editor"),
    ]

    static func run(_ context: Context) throws -> Int32 {
        try KeyArguments.expectSome(context.options.arguments, command: name)
        let session = try context.session()
        let keys = try KeyArguments.read(context.options.arguments, try session.kinds(), command: name)
        guard keys.count == 1 else { throw misused("takes one key") }
        let editing = RecordEditing(session, keys[0].kind, context)
        return try editing.change(try context.stored(keys[0])?.key ?? keys[0], isDryRun: context.options.has("dry-run"))
    }
}
