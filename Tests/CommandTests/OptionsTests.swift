import Testing

@testable import larder

// One at a time: getopt has a state of its own.
@Suite("Options", .serialized)
struct OptionsTests {
    private static let specs =
        [OptionSpec("limit", short: "n", "N", ""), OptionSpec("reverse", short: "r", ""), OptionSpec("set", "A=B", "")]
        + OptionSpec.global

    private func parse(_ words: String...) throws -> Options { try Options(words, OptionsTests.specs, command: "list") }

    private func failure(_ words: String...) -> Failure? {
        do throws(Failure) {
            _ = try Options(words, OptionsTests.specs, command: "list")
            return nil
        } catch { return error }
    }

    @Test("options and arguments may be mixed, long and short, with and without =")
    func mixed() throws {
        let options = try parse("title", "--limit=5", "-r", "--json", "more")
        #expect(options.arguments == ["title", "more"])
        #expect(options.value("limit") == "5")
        #expect(options.has("reverse") && options.has("json"))
        #expect(try parse("-rn", "7").value("limit") == "7")
        #expect(try parse("-n7").value("limit") == "7")
    }

    @Test("an option given several times keeps its values in order, and the last one counts")
    func repeated() throws {
        let options = try parse("--set", "a=1", "--set", "b=2")
        #expect(options.all("set") == ["a=1", "b=2"])
        #expect(options.value("set") == "b=2")
    }

    @Test("a dash alone and everything behind two dashes are arguments")
    func dashes() throws {
        #expect(try parse("-", "--", "--limit", "-r").arguments == ["-", "--limit", "-r"])
        #expect(try parse().arguments.isEmpty)
    }

    @Test("the beginning of a long option is enough where it is the only one")
    func abbreviated() throws { #expect(try parse("--rev").has("reverse")) }

    @Test("an unknown option is a usage error that suggests a near one")
    func unknown() {
        let found = failure("--limt", "3")
        #expect(found?.exitCode == 2)
        #expect(found?.text.contains("--limt") == true)
        #expect(found?.text.contains("did you mean --limit?") == true)
        #expect(found?.text.contains("larder list --help") == true)
        #expect(failure("-x")?.text.contains("-x") == true)
        #expect(failure("-rx")?.exitCode == 2)
    }

    @Test("a value too many or too few is said so")
    func values() {
        #expect(failure("--reverse=yes")?.text == "--reverse: takes no value; see larder list --help")
        #expect(failure("--limit")?.text == "--limit: needs a value; see larder list --help")
        #expect(failure("--l")?.text.contains("--limit") == true)
    }

    @Test("numbers outside of their range are refused")
    func numbers() throws {
        #expect(try parse("-n", "10").number("limit", in: 1...10, command: "list") == 10)
        #expect(try parse().number("limit", in: 1...10, command: "list") == nil)
        for text in ["0", "11", "x", "1.5", ""] {
            let options = try parse("--limit", text)
            #expect(throws: Failure.self) { try options.number("limit", in: 1...10, command: "list") }
        }
    }

    @Test("global options may stand before the command")
    func before() {
        let words = CommandLineWords.split(["--library", "/x", "--json", "list", "--limit", "3"])
        #expect(words.before == ["--library", "/x", "--json"])
        #expect(words.command == "list")
        #expect(words.behind == ["--limit", "3"])
        #expect(CommandLineWords.split(["--library=/x", "count"]).command == "count")
        #expect(CommandLineWords.split(["--version"]).command == nil)
        #expect(CommandLineWords.split([]).command == nil)
    }
}

@Suite("Suggestions")
struct SuggestionTests {
    @Test("letters missing, doubled, wrong and swapped are each one step")
    func distance() {
        #expect(Suggestion.distance("list", "list") == 0)
        #expect(Suggestion.distance("lst", "list") == 1)
        #expect(Suggestion.distance("lisst", "list") == 1)
        #expect(Suggestion.distance("lest", "list") == 1)
        #expect(Suggestion.distance("lsit", "list") == 1)
        #expect(Suggestion.distance("", "list") == 4)
        #expect(Suggestion.distance("유행", "유행어") == 1)
    }

    @Test("the nearest word is suggested, and none that is far away")
    func nearest() {
        let words = ["list", "get", "import", "events"]
        #expect(Suggestion.nearest(to: "lst", in: words) == "list")
        #expect(Suggestion.nearest(to: "imprt", in: words) == "import")
        #expect(Suggestion.nearest(to: "ev", in: words) == "events")
        #expect(Suggestion.nearest(to: "frobnicate", in: words) == nil)
        #expect(Suggestion.nearest(to: "x", in: []) == nil)
    }
}

@Suite("Help")
struct HelpTests {
    @Test("every command says in one line what it is for, and has two examples that call it")
    func commands() {
        for command in Commands.all {
            #expect(!command.purpose.isEmpty && !command.purpose.contains("\n") && !command.purpose.hasSuffix("."))
            #expect(command.synopsis.allSatisfy { $0.hasPrefix(command.name) })
            #expect(command.examples.count >= 2)
            #expect(command.examples.allSatisfy { $0.line.contains("larder") && $0.line.contains(command.name) })
        }
    }

    @Test("no command has an option that a global one shadows")
    func options() {
        for command in Commands.all {
            let names = (command.options + OptionSpec.global).map(\.name)
            #expect(Set(names).count == names.count)
            let letters = (command.options + OptionSpec.global).compactMap(\.short)
            #expect(Set(letters).count == letters.count)
        }
    }
}
