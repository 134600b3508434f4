// Where a client connects to. The environment belongs to the process, so these run one after the other.

import CLarder
import Foundation
import LarderWire
import Testing

@testable import LarderClient

@Suite("environment", .serialized)
struct EnvironmentTests {
    @Test("a path that is there in part is resolved as far as it is")
    func realPath() throws {
        #expect(try LarderClient.realPath("/") == "/")
        #expect(try LarderClient.realPath("/proc/self/../../etc/no/such") == "/etc/no/such")
        let here = FileManager.default.currentDirectoryPath
        #expect(try LarderClient.realPath("no/such") == here + "/no/such")
        #expect(try LarderClient.realPath(".") == here)
    }

    @Test("a named library decides, whatever LARDER_SOCKET says")
    func socketPath() throws {
        setenv("LARDER_SOCKET", "/explicit.sock", 1)
        defer { unsetenv("LARDER_SOCKET") }
        #expect(try LarderClient.socketPath() == "/explicit.sock")
        let derived = try LarderClient.socketPath(library: "/")
        #expect(
            derived
                == SocketPath.derived(library: "/", environment: LarderClient.environment, userId: getuid()))
        #expect(derived.hasSuffix(".sock"))
    }

    @Test("a plugin takes the descriptor that it inherited, and its token")
    func descriptor() throws {
        setenv("LARDER_TOKEN", "abc", 1)
        defer {
            unsetenv("LARDER_TOKEN")
            unsetenv("LARDER_FD")
        }
        try withPeer({ peer in
            let token = try peer.greet().token
            #expect(token == Array("abc".utf8))
        }) { (fd) throws in
            setenv("LARDER_FD", "\(fd)", 1)
            let client = try LarderClient.connectFromEnvironment(name: "p", version: "1")
            #expect(fcntl(fd, F_GETFD) & FD_CLOEXEC != 0)
            client.close()
        }
        for text in ["x", "-1", "9999"] {
            setenv("LARDER_FD", text, 1)
            #expect(throws: ClientError.system(errno: EBADF, operation: "LARDER_FD is \(text)")) {
                try LarderClient.connectFromEnvironment(name: "p", version: "1")
            }
        }
    }
}
