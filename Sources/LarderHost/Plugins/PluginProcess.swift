// One process of a plugin behind its guard, from the start until nothing of it is left.

import Glibc
import LarderLoop

/// What to start.
struct PluginLaunch {
    /// The `larder` program, absolute: it is the guard.
    var larderProgram: String
    var program: String
    var arguments: [String]
    var directory: String
    /// `NAME=value` each; all that the process gets.
    var environment: [String]
    /// The plugin's end of its connection, which it inherits as `inheritedDescriptor`; the caller closes this copy.
    var connection: Int32?

    static let inheritedDescriptor: Int32 = 3
}

/// How a process came to its end.
enum PluginEnd: Equatable {
    case exited(PluginExit)
    case notSpawned(reason: String, isPermanent: Bool)
}

/// A guard and the plugin behind it. Loop thread.
///
/// `onEnd` runs once, when the guard has been reaped, its reports and the plugin's output are read, and every handle
/// is closed.
final class PluginProcess {
    /// How long the plugin's output may stay open behind its end: somebody outside may have been given it.
    static let settleMilliseconds: UInt64 = 250
    /// Output is read no faster than this, so that a plugin that floods its log slows down itself alone.
    static let outputByteCountMax = 524_288
    static let outputWindowMilliseconds: UInt64 = 250

    private let lifeLine: InputPipe
    private let status: OutputPipe
    private let outputs: [OutputPipe]
    private let timer: Timer
    private var guardProcess: ChildProcess!
    private let log: PluginLog
    private let onSpawned: (Int32) -> Void
    private var onEnd: ((PluginEnd) -> Void)?

    private var reportBytes: [UInt8] = []
    private var processID: Int32 = 0
    private var end: PluginEnd?
    private var guardExit: ChildProcess.Exit?
    private var hasStatusEnded = false
    private var openOutputCount = 2
    private var outputByteCount = 0
    private var isPaused = false
    private var openHandleCount = 0
    private var isFinishing = false

    /// Starts the guard; what it starts is told by `onSpawned`. If this throws nothing is left and nothing is told.
    init(
        loop: Loop, launch: PluginLaunch, log: PluginLog, onSpawned: @escaping (Int32) -> Void,
        onEnd: @escaping (PluginEnd) -> Void
    ) throws(LoopError) {
        self.log = log
        self.onSpawned = onSpawned
        self.onEnd = onEnd
        // If something below throws, these close themselves when they are released.
        lifeLine = try InputPipe(loop: loop)
        status = try OutputPipe(loop: loop)
        outputs = [try OutputPipe(loop: loop), try OutputPipe(loop: loop)]
        let ticker = Ticker()
        timer = try Timer(loop: loop) { ticker.onFire?() }
        let guardArguments = GuardArguments(
            lifeLine: 4, status: 5, inherited: launch.connection == nil ? -1 : PluginLaunch.inheritedDescriptor,
            command: [launch.program] + launch.arguments)
        let options = ChildOptions(
            program: launch.larderProgram, arguments: ["guard"] + guardArguments.arguments,
            environment: launch.environment, workingDirectory: launch.directory,
            descriptors: [
                .null, .output(outputs[0]), .output(outputs[1]), launch.connection.map { .inherited($0) } ?? .null,
                .input(lifeLine), .output(status),
            ],
            isSessionLeader: true)
        do throws(LoopError) {
            guardProcess = try ChildProcess(loop: loop, options: options) { [self] exit in guardEnded(exit) }
        } catch {
            closeHandles {}
            throw error
        }
        ticker.onFire = { [self] in timerFired() }
        do throws(LoopError) { try startReading() } catch {
            // The guard runs already: it is ended as any other, and its end is told.
            log.note("\(error)")
            abandon()
        }
    }

    /// SIGTERM to the plugin, through the guard.
    func terminate() {
        do throws(LoopError) { try guardProcess.kill(SIGTERM) } catch { noteUnlessGone(error) }
    }

    /// SIGKILL to the plugin and all that it started, through the guard.
    func kill() {
        do throws(LoopError) {
            _ = try withUnsafeBytes(of: guardKillByte) { bytes throws(LoopError) in
                try lifeLine.stream.tryWrite(bytes)
            }
        } catch { noteUnlessGone(error) }
    }

    /// Lets go of a guard that does not end: kills it, and what is in the plugin's group, and tells the end without
    /// having seen it.
    func abandon() {
        try? guardProcess.kill(SIGKILL)
        killGroup()
        end = end ?? .exited(.signal(SIGKILL))
        finish()
    }

    // MARK: The guard

    private func startReading() throws(LoopError) {
        try status.startReading(onOutput: { [self] in takeReports($0) }) { [self] _ in
            hasStatusEnded = true
            finishIfSettled()
        }
        for (pipe, source) in zip(outputs, [PluginLogSource.output, .error]) {
            try pipe.startReading(onOutput: { [self] in takeOutput($0, source) }) { [self] _ in
                openOutputCount -= 1
                finishIfSettled()
            }
        }
    }

    private func takeReports(_ bytes: UnsafeRawBufferPointer) {
        reportBytes += bytes
        while reportBytes.count >= GuardReport.byteCount {
            let report = GuardReport(reportBytes)
            reportBytes.removeFirst(GuardReport.byteCount)
            switch report {
            case .spawned(let processID):
                self.processID = processID
                onSpawned(processID)
            case .notSpawned(let code): end = .notSpawned(reason: systemText(code), isPermanent: isPermanent(code))
            case .exited(let status): end = .exited(.status(status))
            case .killed(let signal): end = .exited(.signal(signal))
            case .gaveUp: log.note("some process that it started could not be ended")
            case nil: log.note("the guard said something that is no report")
            }
        }
    }

    private func guardEnded(_ exit: ChildProcess.Exit) {
        guardExit = exit
        if isFinishing { return }
        if isPaused { resumeOutput() }
        try? timer.start(afterMilliseconds: PluginProcess.settleMilliseconds)
        finishIfSettled()
    }

    /// The end, where the guard died without telling it.
    private func unreportedEnd(_ exit: ChildProcess.Exit) -> PluginEnd {
        let how = exit.signal == 0 ? "exit status \(exit.status)" : "signal \(exit.signal)"
        log.note("the guard ended with \(how) before the plugin did")
        if processID == 0 { return .notSpawned(reason: "the guard ended with \(how)", isPermanent: false) }
        killGroup()
        return .exited(.signal(SIGKILL))
    }

    /// For a guard that is gone: the kernel ends the plugin itself with it, this ends the rest of the plugin's group.
    private func killGroup() {
        if processID > 1 { _ = Glibc.kill(-processID, SIGKILL) }
    }

    // MARK: Output

    private func takeOutput(_ bytes: UnsafeRawBufferPointer, _ source: PluginLogSource) {
        log.take(bytes, from: source)
        outputByteCount += bytes.count
        if guardExit != nil || isFinishing { return }
        if !timer.isActive {
            try? timer.start(afterMilliseconds: PluginProcess.outputWindowMilliseconds)
        }
        if outputByteCount >= PluginProcess.outputByteCountMax && !isPaused {
            isPaused = true
            for pipe in outputs { pipe.stream.stopReading() }
        }
    }

    private func timerFired() {
        if guardExit != nil {
            finish()
            return
        }
        outputByteCount = 0
        if isPaused { resumeOutput() }
    }

    private func resumeOutput() {
        isPaused = false
        for pipe in outputs { try? pipe.stream.resumeReading() }
    }

    // MARK: The end

    private func finishIfSettled() {
        if guardExit != nil && hasStatusEnded && openOutputCount == 0 { finish() }
    }

    private func finish() {
        if isFinishing { return }
        isFinishing = true
        let end = self.end ?? unreportedEnd(guardExit ?? ChildProcess.Exit(status: 0, signal: SIGKILL))
        log.flush()
        closeHandles { [self] in
            let onEnd = self.onEnd
            self.onEnd = nil
            onEnd?(end)
        }
    }

    private func closeHandles(_ completion: @escaping () -> Void) {
        openHandleCount = outputs.count + 3 + (guardProcess == nil ? 0 : 1)
        let closed = { [self] in
            openHandleCount -= 1
            if openHandleCount == 0 { completion() }
        }
        lifeLine.close(onClosed: closed)
        status.close(onClosed: closed)
        for pipe in outputs { pipe.close(onClosed: closed) }
        timer.close(onClosed: closed)
        guardProcess?.close(onClosed: closed)
    }

    private func noteUnlessGone(_ error: LoopError) {
        if ![LoopError.ESRCH, LoopError.EPIPE, LoopError.EBADF].contains(error.code) { log.note("\(error)") }
    }

    private func systemText(_ code: Int32) -> String { "\(String(cString: strerror(code))) (errno \(code))" }

    /// Whether executing the same file again would fail alike.
    private func isPermanent(_ code: Int32) -> Bool {
        [ENOENT, EACCES, ENOEXEC, ENOTDIR, EISDIR, ELOOP, EPERM, E2BIG].contains(code)
    }
}

/// Lets a timer be made before what it calls.
private final class Ticker {
    var onFire: (() -> Void)?
}
