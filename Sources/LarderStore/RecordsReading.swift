// The two large parts of a checkpoint are read beside one another: the table of records on a thread of its own, the keys on
// the one that opens.

import Glibc
import LarderFormat

/// Reads the table of records, on another thread where the files are real ones. Join it once.
final class RecordsReading: @unchecked Sendable {
    private let input: IndexFileInput
    private let kindCount: Int
    private var thread: pthread_t?
    /// Of the thread until it is joined.
    private var table: RecordTable?

    /// - Parameter isBeside: what is simulated has one thread.
    init(_ input: IndexFileInput, kindCount: Int, isBeside: Bool) {
        self.input = input
        self.kindCount = kindCount
        guard isBeside else { return }
        let argument = Unmanaged.passRetained(self)
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        var made = pthread_t()
        let code = pthread_create(
            &made, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<RecordsReading>.fromOpaque(argument).takeRetainedValue().read()
                return nil
            }, argument.toOpaque())
        pthread_sigmask(SIG_SETMASK, &before, nil)
        // Without a thread it is read when it is joined.
        if code == 0 { thread = made } else { argument.release() }
    }

    private func read() { table = input.readRecords(kindCount: kindCount) }

    /// Waits until it is read; nil where it cannot be trusted.
    func join() -> RecordTable? {
        if let thread { pthread_join(thread, nil) } else { read() }
        var taken: RecordTable?
        swap(&taken, &table)
        return taken
    }
}
