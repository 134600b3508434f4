// Where a dump goes: standard output, or a file that is there only when it is whole.

import Glibc

/// A file that is written beside its place and put there at the end. One thread.
final class DumpFile {
    let output: Output
    private let path: String?
    private var partPath = ""
    private var isKept = false

    /// - Parameter path: nil: standard output.
    init(_ path: String?, _ context: Context) throws(Failure) {
        self.path = path
        guard let path else {
            output = context.output
            return
        }
        partPath = "\(path).part-\(getpid())"
        let descriptor = open(partPath, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw Failure("writing \(path)", errorText(errno), "nothing was written") }
        output = Output(descriptor: descriptor, mayColour: false)
        output.onFault = { [partPath] number in
            unlink(partPath)
            _ = "larder: writing \(path): \(errorText(number)); nothing was kept\n".withCString {
                write(STDERR_FILENO, $0, strlen($0))
            }
            exit(1)
        }
    }

    /// Puts the file to its place, durably.
    func finish() throws(Failure) {
        output.flush()
        guard let path else { return }
        guard fsync(output.descriptor) == 0, rename(partPath, path) == 0 else {
            throw Failure("writing \(path)", errorText(errno), "nothing was kept")
        }
        isKept = true
        let directory = path.lastIndex(of: "/").map { $0 == path.startIndex ? "/" : String(path[..<$0]) } ?? "."
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        fsync(descriptor)
        close(descriptor)
    }

    deinit {
        guard path != nil else { return }
        close(output.descriptor)
        if !isKept { unlink(partPath) }
    }
}
