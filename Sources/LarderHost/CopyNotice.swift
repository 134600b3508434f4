// Noticing that a library is a copy of another. FORMAT.md section 5, `place`.

import Glibc
import LarderStore

/// Which file a library's identity was when a host last served it: a copy's is another.
///
/// A library that was moved to another file system is taken for a copy too.
struct CopyNotice {
    private let path: String
    private let files: any StoreFiles
    private let note: [UInt8]
    private let epoch: String

    /// nil where the file system does not tell which file it is.
    init?(library: String, epoch: String, files: any StoreFiles) {
        var status = stat()
        guard stat(library + "/larder", &status) == 0 else { return nil }
        path = library + "/place"
        self.files = files
        self.epoch = epoch
        note = Array("\(epoch) \(status.st_ino)\n".utf8)
    }

    /// Compares with the note of before and makes it anew. Returns what a person should be told, once for each copy.
    ///
    /// A note that cannot be read or made is passed over: it is made next time.
    func warning() -> String? {
        do throws(SystemError) {
            let before = try files.readWhole(path)
            if before == note { return nil }
            try files.replaceWhole(path, with: note)
            // Of another epoch: left behind by a library that was here before.
            guard let before, before.starts(with: Array("\(epoch) ".utf8)) else { return nil }
        } catch { return nil }
        return """
            this library is a copy, or was moved to another disk: if the original is served too, their changes differ and \
            their cursors cannot be told apart, as both have the epoch \(epoch); to go on with both, back this one up with \
            `larder backup` and serve what `larder restore` makes of it, which has an epoch of its own
            """
    }
}
