import Glibc
import LarderFormat
import Testing

@testable import LarderHost

@Suite("PluginRegistry")
struct PluginsRegistryTests {
    private let directory = PluginsDirectory()
    private var registry: PluginRegistry { PluginRegistry(library: directory.path + "/library") }
    private let settings = ", \"settings\": {\"sound\": {\"default\": true}, \"key\": {}, \"list\": {\"default\": [1]}}"

    private func fault(_ body: () throws -> Void) -> String {
        do {
            try body()
            return "none"
        } catch { return "\(error)" }
    }

    @Test("what is added is listed, changed, read again by another, and removed")
    func life() throws {
        let toast = directory.plugin("toast", script: "exit 0", more: settings)
        let alarm = directory.plugin("alarm", script: "exit 0")
        #expect(try registry.names() == [])
        #expect(try registry.add(path: toast + "/../toast").name == "toast")
        try registry.add(path: alarm, isEnabled: false)
        #expect(try registry.names() == ["alarm", "toast"])

        try registry.setSetting("toast", "sound", to: " false ")
        try registry.setSetting("toast", "key", to: "\"a\\nb\"")
        try registry.disable("toast")
        try registry.enable("alarm")
        let record = try registry.record(of: "toast")
        #expect(record.path == toast)
        #expect(!record.isEnabled)
        #expect(record.settings.map(\.name) == ["key", "sound"])
        #expect(
            directory.read("library/plugins/toast.json")
                == "{\"path\":\"\(toast)\",\"enabled\":false,\"settings\":{\"key\":\"a\\nb\",\"sound\":false}}\n")
        let all = registry.settings(of: record, try registry.manifest(of: "toast"))
        #expect(all.map(\.name) == ["sound", "key", "list"])
        #expect(all.map(\.jsonText) == ["false", "\"a\\nb\"", "[1]"])

        // Adding it again keeps what was set.
        try registry.add(path: toast)
        #expect(try registry.record(of: "toast").settings.count == 2)
        #expect(try registry.record(of: "toast").isEnabled)
        try registry.setSetting("toast", "sound", to: nil)
        #expect(try registry.record(of: "toast").settings.count == 1)

        try registry.remove("toast")
        #expect(try registry.names() == ["alarm"])
        #expect(throws: PluginError.unknownPlugin(name: "toast")) { try registry.remove("toast") }
        #expect(throws: PluginError.unknownPlugin(name: "../x")) { _ = try registry.record(of: "../x") }
    }

    @Test("a taken name, a missing program, and settings that don't fit are refused")
    func refusals() throws {
        let toast = directory.plugin("toast", script: "exit 0", more: settings)
        try registry.add(path: toast)
        let other = PluginsDirectory()
        let second = other.plugin("toast", script: "exit 0")
        #expect(fault { try registry.add(path: second) } == "a plugin \"toast\" is registered already, from \(toast)")
        chmod(second + "/run.sh", 0o600)
        if getuid() != 0 { #expect(fault { try registry.add(path: second) }.hasSuffix("is not executable")) }
        unlink(second + "/run.sh")
        #expect(fault { try registry.add(path: second) }.contains("can't be found"))
        #expect(fault { try registry.add(path: other.path + "/none") }.hasPrefix("there is no file"))
        #expect(fault { try registry.add(path: other.path) }.hasSuffix("/larder-plugin.json"))
        mkfifo(other.path + "/larder-plugin.json", 0o600)
        #expect(fault { try registry.add(path: other.path) }.hasSuffix("is not a regular file"))

        #expect(
            fault { try registry.setSetting("toast", "sond", to: "1") }
                == "the plugin toast has no setting \"sond\"; it has sound, key, list")
        #expect(
            fault { try registry.setSetting("toast", "sound", to: "1") }
                == "the setting sound of toast can't be 1; it has to be true or false, as its default is")
        #expect(fault { try registry.setSetting("toast", "sound", to: "yes") }.contains("JSON"))
    }

    @Test("a damaged record is told, and does not hide the others")
    func damage() throws {
        try registry.add(path: directory.plugin("toast", script: "exit 0"))
        directory.write("library/plugins/bad.json", "{\"path\": \"/x\",\n \"enabld\": true}")
        directory.write("library/plugins/relative.json", "{\"path\": \"x\"}")
        directory.write("library/plugins/NoName.json", "")
        let list = try registry.list()
        #expect(list.map(\.name) == ["bad", "relative", "toast"])
        guard case .failure(let bad) = list[0].record, case .failure(let relative) = list[1].record,
            case .success = list[2].record
        else { throw PluginError.unknownPlugin(name: "bad") }
        #expect(bad.description.contains("bad.json:2: unknown key \"enabld\" in the record; it may have path, enabled"))
        #expect(relative.description.contains("an absolute path"))
    }

    @Test("lines are cut at their end or at the longest, whatever the chunks")
    func lines() {
        let text = Array("one\r\n\ntwo is longer than ten\nlast".utf8)
        for chunk in [1, 2, 3, 5, text.count] {
            var buffer = LineBuffer(byteCountMax: 10)
            var lines: [String] = []
            for start in stride(from: 0, to: text.count, by: chunk) {
                Array(text[start..<min(start + chunk, text.count)]).withUnsafeBytes {
                    buffer.take($0) { lines.append(String(decoding: $0, as: UTF8.self)) }
                }
            }
            #expect(lines == ["one", "", "two is lon", "ger than t", "en"])
            #expect(buffer.flush() == Array("last".utf8))
            #expect(buffer.flush() == nil)
        }
    }

    @Test("the log is stamped line by line, rotated at its limit, and remembers 20 errors")
    func log() throws {
        let log = PluginLog(path: directory.path + "/log", byteCountMax: 1_500, clock: { 1_000 })
        for index in 1...50 {
            Array("line \(index)\u{7}\n".utf8).withUnsafeBytes { log.take($0, from: .error) }
        }
        Array("unended".utf8).withUnsafeBytes { log.take($0, from: .output) }
        log.flush()
        log.note("done")
        #expect(log.lastErrorLines.count == 20)
        #expect(log.lastErrorLines.last == "line 50 ")
        let now = directory.read("log")
        let before = directory.read("log.1")
        #expect(before.hasPrefix("1970-01-01T00:00:01.000Z err  line 1\u{7}\n"))
        #expect(before.utf8.count <= 1_500 && now.utf8.count <= 1_500)
        #expect(now.hasSuffix("1970-01-01T00:00:01.000Z out  unended\n1970-01-01T00:00:01.000Z host done\n"))
        #expect((before + now).split(separator: "\n").count == 52)
    }

    @Test("a log that can't be opened costs lines only")
    func unwritableLog() {
        let log = PluginLog(path: "/nonexistent/log", clock: { 0 })
        log.note("lost")
    }

    @Test("a token is good for one use, and only the whole of it")
    func tokens() {
        var tokens = PluginTokens()
        let toast = tokens.issue(to: "toast")
        let alarm = tokens.issue(to: "alarm")
        #expect(toast.utf8.count == 64 && toast != alarm)
        #expect(tokens.redeem(Array(toast.utf8).dropLast()) == nil)
        #expect(tokens.redeem([UInt8](repeating: 0x30, count: 64)) == nil)
        #expect(tokens.redeem([]) == nil)
        #expect(tokens.redeem(Array(toast.utf8)) == "toast")
        #expect(tokens.redeem(Array(toast.utf8)) == nil)
        let newer = tokens.issue(to: "alarm")
        #expect(tokens.redeem(Array(alarm.utf8)) == nil)
        tokens.revoke("alarm")
        #expect(tokens.redeem(Array(newer.utf8)) == nil)
    }

    @Test("a plugin's environment holds what is stated and nothing else")
    func environment() {
        let host = ["PATH": "/bin", "SECRET": "x", "TMDB_KEY": "k", "HOME": "/h"]
        let environment = PluginEnvironment(
            connection: .socket(path: "/s", token: "t"), name: "a", dataDirectory: "/d", library: "/l")
        #expect(
            environment.variables(listed: ["TMDB_KEY", "PATH", "ABSENT"], from: { host[$0] }) == [
                "PATH=/bin", "HOME=/h", "TMDB_KEY=k", "LARDER_SOCKET=/s", "LARDER_TOKEN=t", "LARDER_PLUGIN_NAME=a",
                "LARDER_PLUGIN_DATA=/d", "LARDER_LIBRARY=/l",
            ])
    }
}
