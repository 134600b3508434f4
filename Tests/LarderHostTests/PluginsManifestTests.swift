import LarderFormat
import Testing

@testable import LarderHost

@Suite("Manifest")
struct PluginsManifestTests {
    private func manifest(_ text: String) throws(PluginError) -> Manifest {
        try Manifest(directory: "/plugins/toast", path: "toast.json", bytes: Array(text.utf8))
    }

    /// A manifest with everything that is required and `more`, which begins in line 3.
    private func text(_ more: String) -> String {
        """
        {"name": "toast", "version": "1.2",
         "program": ["./toast", "--all"], "roles": ["importer"],
         \(more)}
        """
    }

    private func fault(_ text: String) -> String {
        do throws(PluginError) {
            _ = try manifest(text)
            return "none"
        } catch {
            #expect(error.isBadManifest)
            return error.description
        }
    }

    @Test("everything that a manifest can say is kept")
    func full() throws {
        let manifest = try manifest(
            """
            {
              "name": "toast-2", "version": "1.2", "about": "Shows – things",
              "program": ["bin/toast", "--all", "rules.txt"],
              "roles": ["importer", "notifier"], "events": ["deleted"], "kinds": ["title"],
              "connect": "socket", "on_demand": true,
              "recognises": [{"suffix": ".JSON", "keys": ["results", "page"]}, {"line_keys": ["id"]}],
              "settings": {"sound": {"default": [1, {"a": null}], "about": "noise"}, "token": {}},
              "environment": ["TMDB_KEY"],
              "grants": {"read": ["title"], "save": [], "delete": ["title", "book"]}
            }
            """)
        #expect(manifest.name == "toast-2")
        #expect(manifest.version == "1.2")
        #expect(manifest.about == "Shows – things")
        #expect(manifest.program == "/plugins/toast/bin/toast")
        #expect(manifest.arguments == ["--all", "rules.txt"])
        #expect(manifest.roles == [.importer, .notifier])
        #expect(manifest.events == [.deleted])
        #expect(manifest.kinds == ["title"])
        #expect(manifest.connect == .socket)
        #expect(manifest.isOnDemand)
        #expect(manifest.settingNames == ["sound", "token"])
        #expect(try manifest.settings[0].defaultValue == JSONValue(parsing: "[1,{\"a\":null}]"))
        #expect(manifest.settings[0].about == "noise")
        #expect(manifest.settings[1].defaultValue.isNull)
        #expect(manifest.environment == ["TMDB_KEY"])
        #expect(manifest.grants.read == ["title"])
        #expect(manifest.grants.delete == ["title", "book"])

        let rules = manifest.recognises
        #expect(rules.count == 2)
        #expect(rules[0].matches(fileName: "a.json", objectKeys: ["page", "x", "results"], lineKeys: nil))
        #expect(!rules[0].matches(fileName: "a.json", objectKeys: ["page"], lineKeys: nil))
        #expect(!rules[0].matches(fileName: "a.csv", objectKeys: ["page", "results"], lineKeys: nil))
        #expect(rules[1].matches(fileName: "a", objectKeys: nil, lineKeys: ["id"]))
        #expect(!rules[1].matches(fileName: "a", objectKeys: ["id"], lineKeys: nil))
    }

    @Test("what is left out has its default")
    func defaults() throws {
        let manifest = try manifest(
            "{\"name\": \"a\", \"version\": \"1\", \"program\": [\"python3\", \"a.py\"], \"roles\": [\"exporter\"]}")
        #expect(manifest.program == "python3")
        #expect(manifest.connect == .descriptor)
        #expect(!manifest.isOnDemand)
        #expect(manifest.events == [] && manifest.kinds == [] && manifest.settings.isEmpty)
    }

    @Test("errors name the file, the line, what was seen and what is allowed")
    func errors() {
        let cases: [(more: String, error: String)] = [
            ("\"evnts\": []", "unknown key \"evnts\" in the manifest; it may have name, version, about"),
            ("\"grants\": {\"write\": []}", "unknown key \"write\" in grants; it may have read, save, delete"),
            ("\"recognises\": [{\"sufix\": 1}]", "unknown key \"sufix\" in recognises[0]"),
            ("\"recognises\": [{}]", "recognises[0] is an object; it has to be an object with suffix, keys"),
            ("\"settings\": {\"a\": {\"defalt\": 1}}", "unknown key \"defalt\" in settings.a; it may have default"),
            ("\"settings\": {\"a b\": {}}", "a setting's name is \"a b\"; it has to be 1 to 64"),
            ("\"settings\": {\"a\": {\"about\": 5}}", "settings.a.about is the number 5; it has to be a string"),
            ("\"events\": [\"saved\"]", "events[0] is \"saved\"; it has to be \"downloaded\" or \"deleted\""),
            ("\"kinds\": [\"title\", 7]", "kinds[1] is the number 7; it has to be a kind's name"),
            ("\"kinds\": [\"a\", \"a\"]", "kinds[1] is \"a\"; it has to be named once in the list"),
            ("\"connect\": \"tcp\"", "connect is \"tcp\"; it has to be \"descriptor\" or \"socket\""),
            ("\"on_demand\": \"yes\"", "on_demand is \"yes\"; it has to be true or false"),
            ("\"environment\": [\"LARDER_FD\"]", "environment[0] is \"LARDER_FD\"; it has to be a variable's name"),
            ("\"environment\": [\"A=B\"]", "environment[0] is \"A=B\""),
            ("\"about\": null", "about is null; it has to be a string"),
            ("\"about\": \"a\\u0000\"", "it has to be a string without U+0000"),
            ("\"about\": ,", "column"),
        ]
        for (more, error) in cases {
            let found = fault(text(more))
            #expect(found.hasPrefix("toast.json:3: "), "\(more): \(found)")
            #expect(found.contains(error), "\(more): \(found)")
        }
        func required(_ name: String, _ program: String) -> String {
            "{\"name\": \"\(name)\", \"version\": \"1\", \"program\": [\(program)], \"roles\": []}"
        }
        #expect(fault(required("A", "\"a\"")).contains("a–z"))
        #expect(fault(required("a", "")).contains("an array of the program and its arguments"))
        #expect(fault(required("a", "\"a\"")).contains("roles is an empty array"))
        #expect(fault("\n{\"name\": \"a\"}") == "toast.json:2: the manifest has no \"version\", which is required")
        #expect(fault("[]").contains("the manifest is an empty array; it has to be an object"))
        #expect(
            fault(
                "{\"name\": \"a\", \"version\": \"1\", \"program\": [\"a\"], \"roles\": [\"exporter\"], "
                    + "\"recognises\": []}"
            ).contains("left out unless \"importer\""))
    }

    @Test("a cut manifest is an error at every byte")
    func truncation() {
        let whole = Array(text("\"settings\": {\"a\": {\"default\": 1}}").utf8)
        for count in 0..<whole.count {
            #expect(throws: PluginError.self) {
                _ = try Manifest(directory: "/p", path: "p", bytes: Array(whole[..<count]))
            }
        }
    }

    @Test("names are 1 to 64 of a–z, 0–9 and hyphen")
    func names() {
        for name in ["a", "tmdb-importer", "0", String(repeating: "x", count: 64)] { #expect(Manifest.isName(name)) }
        for name in ["", "A", "a.b", "a/b", "..", "é", "a_b", String(repeating: "x", count: 65)] {
            #expect(!Manifest.isName(name))
        }
    }
}
