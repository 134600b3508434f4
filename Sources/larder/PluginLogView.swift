// What a plugin wrote.

import Glibc
import LarderFormat
import LarderHost

/// Shows the end of a plugin's log, and what is added to it.
final class PluginLogView {
    private static let pollMicroseconds: UInt32 = 250_000
    /// A log is moved away when it has this size, so this much is all there is.
    private static let byteCountMax = 2_097_152

    private let context: Context
    private let name: String
    private let path: String

    init(_ context: Context, _ plugins: PluginDesk, _ name: String) throws {
        self.context = context
        self.name = name
        path = plugins.registry.logPath(of: name)
        do throws(PluginError) { _ = try plugins.registry.record(of: name) } catch {
            // Of a plugin that was removed the log stays.
            if access(path, R_OK) != 0 {
                throw Failure("the log of \(name)", "\(error)", "larder plugin list shows the plugins")
            }
        }
    }

    /// - Returns: the exit code.
    func run(lines count: Int, isFollowing: Bool) throws -> Int32 {
        Interrupt.hold()
        var offset = 0
        let now = read(path, from: &offset)
        var lines = PluginLogView.lines(now)
        if lines.count < count {
            var start = 0
            lines = PluginLogView.lines(read(path + ".1", from: &start)) + lines
        }
        if lines.isEmpty, !isFollowing { context.note("\(name) has written nothing yet") }
        for line in lines.suffix(count) { show(line) }
        context.output.flush()
        while isFollowing, !Interrupt.isPending {
            usleep(PluginLogView.pollMicroseconds)
            for line in PluginLogView.lines(read(path, from: &offset)) { show(line) }
            context.output.flush()
        }
        Interrupt.release()
        return 0
    }

    /// What stands behind `offset`, up to the last line's end; a file that became shorter is a new one.
    private func read(_ path: String, from offset: inout Int) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        let size = Int(lseek(descriptor, 0, SEEK_END))
        if size < offset { offset = 0 }
        let wanted = min(size - offset, PluginLogView.byteCountMax)
        guard wanted > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: wanted)
        let count = pread(descriptor, &bytes, wanted, off_t(offset))
        guard count > 0, let end = bytes[..<count].lastIndex(of: 0x0A) else { return [] }
        offset += end + 1
        return Array(bytes[...end])
    }

    private static func lines(_ bytes: [UInt8]) -> [String] {
        bytes.split(separator: 0x0A).map { String(decoding: $0, as: UTF8.self) }
    }

    /// `2025-03-31T08:00:00.000Z out  ready to import`
    private func show(_ line: String) {
        guard context.isJSON else { return context.output.line(DisplayText.visible(line)) }
        let parts = line.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
        let rest = parts.count > 1 ? parts[1] : ""
        context.output.json {
            $0.member("time", String(parts[0]))
            $0.member("source", String(rest.prefix(4).prefix { $0 != " " }))
            $0.member("text", String(rest.dropFirst(5)))
        }
    }
}
