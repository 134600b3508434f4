// What the disk can do: aligned writes past the page cache, each block synced.

import CLarder
import Glibc

/// Writes bytes to a new file in blocks of 2 MiB, each followed by fdatasync; returns the seconds that took.
func probeDisk(path: String, byteCount: Int) throws(BenchError) -> Double {
    let block = 2_097_152
    guard let memory = larder_memory_map(block) else { throw .system("mmap", code: errno) }
    defer { larder_memory_unmap(memory, block) }
    var random = SplitMix(seed: 5)
    for offset in stride(from: 0, to: block, by: 8) {
        memory.storeBytes(of: random.next(), toByteOffset: offset, as: UInt64.self)
    }
    let flags = O_WRONLY | O_CREAT | O_TRUNC
    var descriptor = larder_open(path, flags | larder_o_direct(), 0o600)
    // Some file systems have no direct writes; the host then does without, too.
    if descriptor < 0 { descriptor = larder_open(path, flags, 0o600) }
    guard descriptor >= 0 else { throw .system("open \(path)", code: -descriptor) }
    defer {
        close(descriptor)
        unlink(path)
    }
    let started = monotonicNanoseconds()
    var done = 0
    while done < byteCount {
        // A multiple of the block size of any disk.
        let count = min(block, (byteCount - done + 4_095) / 4_096 * 4_096)
        let written = pwrite(descriptor, memory, count, off_t(done))
        guard written > 0 else { throw .system("pwrite \(path)", code: errno) }
        done += written
        if fdatasync(descriptor) != 0 { throw .system("fdatasync \(path)", code: errno) }
    }
    return seconds(from: started, to: monotonicNanoseconds())
}
