// `host`: the host under test, in a process of its own.

import CLarder
import Glibc
import LarderHost

/// Serves a library until SIGTERM; ends with the process that started it. Returns the exit code.
///
/// - Parameter memoryLogByteCount: where the log is to lie in memory: how much of it at most.
func runHost(library: String, socket: String, memoryLogByteCount: Int?) throws(BenchError) -> Int32 {
    _ = larder_set_death_signal(SIGKILL)
    var options = HostOptions(library: library, socket: socket)
    options.version = "bench"
    // A compaction is measured where it is asked for, and nowhere else.
    options.compaction.isAutomatic = false
    options.log = { text in if !text.hasPrefix("stopping") { progress("host: \(text)") } }
    if let memoryLogByteCount { options.files = try MemoryLogFiles(byteCount: memoryLogByteCount) }
    do throws(HostError) { return try Host(options: options).run() } catch { throw .child("\(error)") }
}
