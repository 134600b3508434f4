// Time, as all processes of a run read it.

import Glibc

/// Nanoseconds of CLOCK_MONOTONIC, which is the same in every process.
func monotonicNanoseconds() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
}

/// Seconds between two of them.
func seconds(from start: Int64, to end: Int64) -> Double { Double(end - start) / 1e9 }
