// Which CPUs host and client run on: waking the other CPU costs many times what a request does.

import Glibc

/// A placement of host and client; a CPU below 0 stands for any.
struct Placement {
    let name: String
    let host: Int
    let client: Int

    static let free = Placement(name: "free", host: -1, client: -1)
    static let split = Placement(name: "split", host: 0, client: 1)
    static let one = Placement(name: "one", host: 0, client: 0)

    /// Those that this machine can have.
    static var all: [Placement] { sysconf(Int32(_SC_NPROCESSORS_ONLN)) > 1 ? [free, split, one] : [free, one] }
}
