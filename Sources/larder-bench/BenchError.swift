// Why a run ends early.

import Glibc

/// What went wrong, in a sentence.
enum BenchError: Error, CustomStringConvertible {
    /// The command line makes no sense.
    case usage(String)
    /// A system call failed.
    case system(String, code: Int32)
    /// A process that the run needs failed.
    case child(String)
    /// What was measured is not what was asked for: a count, a byte, a seq.
    case wrong(String)

    var description: String {
        switch self {
        case .usage(let text), .child(let text): text
        case .system(let call, let code): "\(call): \(String(cString: strerror(code)))"
        case .wrong(let text): "wrong result: \(text)"
        }
    }
}

/// Throws unless the answer is what it has to be.
func expect(_ isRight: Bool, _ text: @autoclosure () -> String) throws(BenchError) {
    if !isRight { throw .wrong(text()) }
}

/// Runs a call of the client library; its error becomes this program's.
func told<T, E: Error>(_ body: () throws(E) -> T) throws(BenchError) -> T {
    do throws(E) { return try body() } catch { throw .child("\(error)") }
}
