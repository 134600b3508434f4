// Which library, and where its host listens.

import Glibc
import LarderClient
import LarderWire

/// A library's directory and its socket, from options and environment.
struct Place: Equatable, Sendable {
    /// Absolute, without links as far as it exists.
    let library: String
    let socket: String

    init(_ options: Options) throws(Failure) {
        guard let chosen = options.value("library") ?? LibraryPath.chosen(environment: LarderClient.environment),
            !chosen.isEmpty
        else {
            throw .usage(
                "no library", "neither LARDER_LIBRARY nor HOME is set", "name a directory with --library DIR")
        }
        do throws(ClientError) {
            library = try LarderClient.realPath(chosen)
            if let socket = options.value("socket"), !socket.isEmpty {
                self.socket = socket
            } else {
                socket = try LarderClient.socketPath(library: options.value("library") == nil ? nil : library)
            }
        } catch {
            throw Failure("the library \(chosen)", error)
        }
    }

    init(library: String, socket: String) {
        self.library = library
        self.socket = socket
    }
}
