// How a host is started, and why it may not start.

import LarderLoop
import LarderStore

/// What a host is told at its start.
public struct HostOptions {
    /// The library's directory, absolute.
    public var library: String
    /// Path of the Unix socket.
    public var socket: String
    /// Started by a command that found no host: no plugins of its own accord, and it exits when idle.
    public var isTransient = false
    /// How long a transient host stays without a connection.
    public var idleMilliseconds = 2_000
    /// The `larder` program, which the guard of each plugin runs again.
    public var programPath = ""
    public var version = "0"
    /// A line for people about something that happened. Loop thread.
    public var log: (String) -> Void = { _ in }
    /// Called once, when the library is open and connections are served.
    public var onReady: (() -> Void)?
    /// How the store is opened.
    public var store = StoreOptions()
    public var compaction = CompactionOptions()
    /// The files that the store uses.
    public var files: any StoreFiles = SystemFiles()
    /// What runs the host's loop in the system's place; nil: the system does. For the simulator.
    public var simulation: SimulatedLoop?
    /// A bug that the simulator must find; nil in life.
    var canary: HostCanary?

    public init(library: String, socket: String) {
        self.library = library
        self.socket = socket
    }
}

/// Bugs of the host that a test switches on, to see that they are found.
enum HostCanary {
    /// A batch is answered when it is decided, not when it is durable.
    case answersEarly
    /// A commit is shown to readers and subscribers before it is written.
    case publishesEarly
    /// A subscription that goes on from a cursor begins one entry too late.
    case resumesLate
    /// An import that goes on is told of one durable batch less.
    case forgetsBatch
}

public enum HostError: Error, CustomStringConvertible {
    case store(StoreError)
    case loop(LoopError)
    /// The path cannot be a socket's.
    case badSocket(path: String, reason: String)
    /// Another process answers on the socket.
    case socketInUse(path: String)

    public var description: String {
        switch self {
        case .store(let error): "\(error)"
        case .loop(let error): "the event loop could not be set up: \(error)"
        case .badSocket(let path, let reason): "the socket \(path) cannot be made: \(reason)"
        case .socketInUse(let path): "another process answers on the socket \(path)"
        }
    }
}
