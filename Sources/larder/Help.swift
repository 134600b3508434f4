// The texts of `help` and `--help`.

/// Prints what commands are for and how they are used.
enum Help {
    static func printVersion(_ context: Context) {
        if context.isJSON {
            context.output.json {
                $0.name("version")
                $0.string(larderVersion)
            }
        } else {
            context.output.line("larder \(larderVersion)")
        }
    }

    static func printOverview(_ output: Output) {
        output.line("Larder keeps a library of films, books, jokes and whatever else you declare.")
        output.line("")
        output.line("usage: larder [--library DIR] [--socket PATH] [--json] [--no-color] command …")
        output.line("")
        let width = Commands.all.map { $0.name.count }.max() ?? 0
        for command in Commands.all {
            let name = command.name + String(repeating: " ", count: width - command.name.count)
            output.line("  \(output.styled(name, .bold))  \(command.purpose)")
        }
        output.line("")
        output.line("larder help COMMAND, or larder COMMAND --help, says more, with examples.")
        output.line("Without a running host (larder serve) a command starts one, which stops when it is idle.")
        output.line("Exit codes: 0, 1 (failed, refused or not found), 2 (a wrong command line); doctor has its own.")
        output.line("larder --version says which Larder this is.")
    }

    static func print(_ command: any Command.Type, _ output: Output) {
        output.line("larder \(command.name): \(command.purpose)")
        output.line("")
        for (index, line) in command.synopsis.enumerated() {
            output.line((index == 0 ? "usage: " : "       ") + "larder " + line)
        }
        if !command.details.isEmpty {
            output.line("")
            for line in command.details.split(separator: "\n", omittingEmptySubsequences: false) {
                output.line(String(line))
            }
        }
        printOptions("options", command.options, output)
        output.line("")
        output.line("examples:")
        for example in command.examples {
            output.line("  " + output.styled(example.line, .bold))
            output.line("      " + example.does)
        }
        printOptions("options of every command", OptionSpec.global, output)
    }

    private static func printOptions(_ title: String, _ specs: [OptionSpec], _ output: Output) {
        let rows = specs.filter { !$0.isHidden }.map { spec in
            let short = spec.short.map { "-\($0), " } ?? "    "
            return (short + "--" + spec.name + (spec.argument.map { " " + $0 } ?? ""), spec.about)
        }
        guard !rows.isEmpty else { return }
        output.line("")
        output.line(title + ":")
        let width = rows.map { $0.0.count }.max() ?? 0
        for (option, about) in rows {
            let lines = about.split(separator: "\n")
            output.line("  " + option + String(repeating: " ", count: width - option.count + 2) + (lines.first ?? ""))
            for line in lines.dropFirst() { output.line(String(repeating: " ", count: width + 4) + line) }
        }
    }
}
