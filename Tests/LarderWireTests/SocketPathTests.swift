import LarderWire
import Testing

@Suite("paths")
struct SocketPathTests {
    private func variables(_ values: [String: String]) -> (String) -> String? { { values[$0] } }

    @Test("the library is the first that is named")
    func library() {
        let all = ["LARDER_LIBRARY": "lib", "XDG_DATA_HOME": "/data", "HOME": "/home/a"]
        #expect(LibraryPath.chosen(environment: variables(all)) == "lib")
        var some = all
        some["LARDER_LIBRARY"] = ""
        #expect(LibraryPath.chosen(environment: variables(some)) == "/data/larder")
        some["XDG_DATA_HOME"] = "relative"
        #expect(LibraryPath.chosen(environment: variables(some)) == "/home/a/.local/share/larder")
        #expect(LibraryPath.chosen(environment: variables([:])) == nil)
    }

    @Test("the socket follows from the library's path")
    func socket() {
        let runtime = variables(["XDG_RUNTIME_DIR": "/run/user/7"])
        // printf %s abc | sha256sum
        let path = SocketPath.derived(library: "abc", environment: runtime, userId: 7)
        #expect(path == "/run/user/7/larder/ba7816bf8f01cfea.sock")
        #expect(
            SocketPath.derived(library: "abc", environment: variables([:]), userId: 7)
                == "/tmp/larder-7/ba7816bf8f01cfea.sock")
        #expect(SocketPath.explicit(environment: variables(["LARDER_SOCKET": "/s"])) == "/s")
        #expect(SocketPath.explicit(environment: variables(["LARDER_SOCKET": ""])) == nil)
    }
}
