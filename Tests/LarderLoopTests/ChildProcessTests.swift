import Glibc
import LarderLoop
import Testing

@Suite("ChildProcess")
struct ChildProcessTests {
    private func shell(_ script: String) -> ChildOptions {
        ChildOptions(program: "/bin/sh", arguments: ["-c", script])
    }

    @Test("a child inherits descriptor 3, and its exit status comes back once")
    func inheritedDescriptor() throws {
        var exits: [ChildProcess.Exit] = []
        var closed = 0
        let received = Collector()
        try withLoop { loop in
            let ends = try socketPair()
            let stream = try Stream(loop: loop, adopting: ends.0)
            var options = shell("read line <&3; echo \"got $line, $NAME\" >&3; exit 7")
            options.environment = ["NAME=value"]
            options.descriptors.append(.inherited(ends.1))
            var child: ChildProcess!
            child = try ChildProcess(loop: loop, options: options) { exit in
                exits.append(exit)
                child.close { closed += 1 }
            }
            closeDescriptor(ends.1)
            #expect(child.processID > 0)
            #expect(try Array("hello\n".utf8).withUnsafeBytes { try stream.tryWrite($0) } == 6)
            try received.read(stream) { stream.close() }
        }
        #expect(String(decoding: received.bytes, as: UTF8.self) == "got hello, value\n")
        #expect(exits == [ChildProcess.Exit(status: 7, signal: 0)])
        #expect(closed == 1)
    }

    @Test("output, errors and input go through pipes, in the directory asked for")
    func pipes() throws {
        var output: [UInt8] = []
        var errors: [UInt8] = []
        var ends = 0
        var exits = 0
        try withLoop { loop in
            let input = try InputPipe(loop: loop)
            let standardOutput = try OutputPipe(loop: loop)
            let standardError = try OutputPipe(loop: loop)
            var options = shell("cat; pwd; echo trouble > /dev/stderr")
            options.workingDirectory = "/usr"
            options.descriptors = [.input(input), .output(standardOutput), .output(standardError)]
            var child: ChildProcess!
            child = try ChildProcess(loop: loop, options: options) { _ in
                exits += 1
                child.close()
            }
            try standardOutput.startReading(onOutput: { output += $0 }) { error in
                #expect(error == nil)
                ends += 1
                standardOutput.close()
            }
            try standardError.startReading(onOutput: { errors += $0 }) { error in
                #expect(error == nil)
                ends += 1
                standardError.close()
            }
            try Array("in\n".utf8).withUnsafeBytes { try input.stream.write(copying: $0) { _ in input.close() } }
        }
        #expect(String(decoding: output, as: UTF8.self) == "in\n/usr\n")
        #expect(String(decoding: errors, as: UTF8.self) == "trouble\n")
        #expect(ends == 2)
        #expect(exits == 1)
    }

    @Test("a program that is missing throws, its exit callback never runs, and its pipes end")
    func missingProgram() throws {
        var ends = 0
        try withLoop { loop in
            let pipe = try OutputPipe(loop: loop)
            let options = ChildOptions(program: "/nonexistent/program", descriptors: [.null, .output(pipe)])
            #expect(throws: LoopError(code: LoopError.ENOENT, operation: "uv_spawn")) {
                _ = try ChildProcess(loop: loop, options: options) { _ in Issue.record("exited") }
            }
            try pipe.startReading(onOutput: { _ in Issue.record("output") }) { _ in
                ends += 1
                pipe.close()
            }
        }
        #expect(ends == 1)
    }

    @Test("an argument with NUL inside is refused")
    func argumentWithNUL() throws {
        try withLoop { loop in
            #expect(throws: LoopError(code: LoopError.EINVAL, operation: "uv_spawn")) {
                _ = try ChildProcess(loop: loop, options: shell("exit\0 1")) { _ in }
            }
        }
    }

    @Test("a session leader is killed with what it started, and told as killed by that signal")
    func killGroup() throws {
        var exits: [ChildProcess.Exit] = []
        var ends = 0
        try withLoop { loop in
            let pipe = try OutputPipe(loop: loop)
            // The end of the pipe is seen only when the grandchild has gone too.
            var options = shell("sleep 1000 & echo started; wait")
            options.descriptors = [.null, .output(pipe), .null]
            options.isSessionLeader = true
            var child: ChildProcess!
            child = try ChildProcess(loop: loop, options: options) { exit in
                exits.append(exit)
                #expect(throws: LoopError(code: LoopError.ESRCH, operation: "uv_process_kill")) {
                    try child.kill(SIGKILL)
                }
                child.close()
            }
            try pipe.startReading(
                onOutput: { _ in
                    do { try child.killGroup(SIGKILL) } catch { Issue.record(error) }
                },
                onEnd: { _ in
                    ends += 1
                    pipe.close()
                })
        }
        #expect(exits == [ChildProcess.Exit(status: 0, signal: SIGKILL)])
        #expect(ends == 1)
    }

    @Test("a child dies of SIGPIPE though this process ignores it")
    func defaultSignals() throws {
        var exits: [ChildProcess.Exit] = []
        try withLoop { loop in
            var child: ChildProcess!
            child = try ChildProcess(loop: loop, options: shell("kill -PIPE $$; exit 1")) { exit in
                exits.append(exit)
                child.close()
            }
        }
        #expect(exits == [ChildProcess.Exit(status: 0, signal: SIGPIPE)])
    }
}
