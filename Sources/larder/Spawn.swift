// Starts another program.

import CLarder
import Glibc

/// A program to start with posix_spawn. Signals that this process blocks or ignores are as usual in the new one.
struct Spawn {
    struct Refusal: Error {
        let number: Int32
    }

    /// A path, or a name to look up in PATH.
    var program: String
    /// With the program's own name first.
    var arguments: [String]
    /// `NAME=value` added to this process's environment.
    var environment: [String] = []
    /// nil: this process's.
    var directory: String?
    /// nil: /dev/null.
    var input: Int32?
    var output: Int32?
    /// nil: this process's standard error.
    var errors: Int32?
    /// A session of its own, which no terminal's signals reach.
    var isDetached = false

    func run() -> Result<pid_t, Refusal> {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor, flags) in [(STDIN_FILENO, input, O_RDONLY), (STDOUT_FILENO, output, O_WRONLY)] {
            if let descriptor {
                posix_spawn_file_actions_adddup2(&actions, descriptor, number)
            } else {
                posix_spawn_file_actions_addopen(&actions, number, "/dev/null", flags, 0)
            }
        }
        if let errors { posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO) }
        if let directory { _ = larder_spawn_chdir(&actions, directory) }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        var usual = sigset_t()
        sigemptyset(&usual)
        sigaddset(&usual, SIGPIPE)
        sigaddset(&usual, SIGINT)
        posix_spawnattr_setsigdefault(&attributes, &usual)
        // POSIX_SPAWN_SETSID is a macro behind _GNU_SOURCE: 0x80.
        let flags = Int32(POSIX_SPAWN_SETSIGMASK) | Int32(POSIX_SPAWN_SETSIGDEF) | (isDetached ? 0x80 : 0)
        posix_spawnattr_setflags(&attributes, Int16(flags))
        var argv = arguments.map { strdup($0) }
        argv.append(nil)
        defer { for word in argv { free(word) } }
        var variables = Spawn.environment(with: environment).map { strdup($0) }
        variables.append(nil)
        defer { for variable in variables { free(variable) } }
        var pid: pid_t = 0
        let result =
            program.utf8.contains(0x2F)
            ? posix_spawn(&pid, program, &actions, &attributes, argv, variables)
            : posix_spawnp(&pid, program, &actions, &attributes, argv, variables)
        return result == 0 ? .success(pid) : .failure(Refusal(number: result))
    }

    private static func environment(with added: [String]) -> [String] {
        let names = added.map { $0.prefix { $0 != "=" } + "=" }
        var all = added
        var at = environ
        while let variable = at.pointee {
            let text = String(cString: variable)
            if !names.contains(where: { text.hasPrefix($0) }) { all.append(text) }
            at += 1
        }
        return all
    }
}
