// Options of commands, read by getopt_long.

import CLarder
import Glibc

/// One option of a command.
struct OptionSpec: Sendable {
    let name: String
    /// One letter, or nil.
    let short: Character?
    /// What its value is called in the help; nil: it takes none.
    let argument: String?
    let about: String
    let isHidden: Bool

    /// An option without a value.
    init(_ name: String, short: Character? = nil, hidden isHidden: Bool = false, _ about: String) {
        self.init(name, short: short, nil, hidden: isHidden, about)
    }

    init(_ name: String, short: Character? = nil, _ argument: String?, hidden isHidden: Bool = false, _ about: String) {
        self.name = name
        self.short = short
        self.argument = argument
        self.about = about
        self.isHidden = isHidden
    }

    /// Understood before and behind every command.
    static let global = [
        OptionSpec("library", "DIR", "the library's directory (else $LARDER_LIBRARY, else its place in the home)"),
        OptionSpec("socket", "PATH", "the host's socket (else $LARDER_SOCKET, else the library's)"),
        OptionSpec("json", "print one JSON object a line"),
        OptionSpec("no-color", "no colours, as with NO_COLOR set"),
        OptionSpec("help", short: "h", "say how the command is used"),
    ]
}

/// What stood on a command line.
struct Options: Sendable {
    /// Values in the order given; an option without a value has "" for each time.
    private var values: [String: [String]] = [:]
    /// What is no option.
    private(set) var arguments: [String] = []

    init() {}

    /// Reads the words behind a command's name. Options and arguments may be mixed; behind `--` all are arguments.
    ///
    /// - Parameter command: its name, for messages; "" for none.
    /// - Throws: a usage failure for an option that is not known, and for a value too many or too few.
    init(_ words: [String], _ specs: [OptionSpec], command: String) throws(Failure) {
        var argv: [UnsafeMutablePointer<CChar>?] = (["larder"] + words).map { strdup($0) }
        let owned = argv
        argv.append(nil)
        defer { for word in owned { free(word) } }
        var short = ":"
        for spec in specs {
            if let letter = spec.short { short += String(letter) + (spec.argument == nil ? "" : ":") }
        }
        let names = specs.map { strdup($0.name) }
        defer { for name in names { free(name) } }
        // Values above any letter's.
        let table = specs.indices.map {
            larder_option(name: names[$0], takes_argument: specs[$0].argument == nil ? 0 : 1, value: Int32(1_000 + $0))
        }
        larder_set_opterr(0)
        larder_set_optind(0)
        while true {
            let at = Int(larder_optind())
            let found = larder_getopt_long(Int32(words.count + 1), argv, short, table, table.count, nil)
            if found == -1 { break }
            let shown = Options.word(argv, max(at, 1), Int(larder_optind()))
            switch found {
            case 0x3F: throw Options.unknown(shown, specs, command)
            case 0x3A:
                throw .usage(shown, "needs a value", Options.whereToLook(command))
            default:
                let spec =
                    specs.indices.contains(Int(found) - 1_000)
                    ? specs[Int(found) - 1_000] : specs.first { $0.short?.asciiValue.map(Int32.init) == found }
                guard let spec else { continue }
                let value = spec.argument == nil ? "" : larder_optarg().map { String(cString: $0) } ?? ""
                values[spec.name, default: []].append(value)
            }
        }
        arguments = argv[Int(larder_optind())...].compactMap { $0.map { String(cString: $0) } }
    }

    /// The option that getopt has just looked at: the last word before `end` that is one.
    private static func word(_ argv: [UnsafeMutablePointer<CChar>?], _ start: Int, _ end: Int) -> String {
        // A cluster of letters leaves the index where it is.
        for at in [end - 1, start, end] where argv.indices.contains(at) {
            if let word = argv[at].map({ String(cString: $0) }), word.hasPrefix("-"), word.count > 1 { return word }
        }
        return "-" + String(UnicodeScalar(UInt8(truncatingIfNeeded: larder_optopt())))
    }

    private static func unknown(_ word: String, _ specs: [OptionSpec], _ command: String) -> Failure {
        let parts = word.split(separator: "=", maxSplits: 1)
        let name = String(parts.first ?? "")
        if let spec = specs.first(where: { ("--" + $0.name).hasPrefix(name) && $0.argument == nil }), parts.count > 1 {
            return .usage("--" + spec.name, "takes no value", whereToLook(command))
        }
        let known = specs.filter { !$0.isHidden }.map { "--" + $0.name }
        let matching = known.filter { $0.hasPrefix(name) }
        if name.hasPrefix("--"), matching.count > 1 {
            return .usage(name, "could be \(matching.joined(separator: ", "))", whereToLook(command))
        }
        let near = Suggestion.nearest(to: name, in: known).map { "did you mean \($0)? " } ?? ""
        return .usage(
            "unknown option \(name)", command.isEmpty ? "larder has none such" : "larder \(command) has none such",
            near + whereToLook(command))
    }

    private static func whereToLook(_ command: String) -> String {
        "see larder " + (command.isEmpty ? "help" : "\(command) --help")
    }

    func has(_ name: String) -> Bool { values[name] != nil }
    /// The last one counts.
    func value(_ name: String) -> String? { values[name]?.last }
    func all(_ name: String) -> [String] { values[name] ?? [] }

    /// A whole number of `range`, or nil where the option was not given.
    func number(_ name: String, in range: ClosedRange<Int>, command: String) throws(Failure) -> Int? {
        guard let text = value(name) else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw .usage(
                "--\(name) \(text)",
                "expected a whole number from \(range.lowerBound)"
                    + (range.upperBound == .max ? "" : " to \(range.upperBound)"), "see larder \(command) --help")
        }
        return number
    }
}
