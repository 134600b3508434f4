// Long reads, cut into slices of about two milliseconds between the other work of the loop.

import LarderFormat
import LarderLoop
import LarderStore
import LarderWire

/// What a step of long work came to.
enum SliceStep {
    /// There is more to do.
    case more
    /// It has answered.
    case done
    /// It goes on when this was read.
    case cold(ColdRead)
}

extension Connection {
    private static let sliceNanoseconds: UInt64 = 2_000_000

    /// Does the work of a request, step by step, until `step` says that it has answered. A step takes a fraction of a
    /// millisecond. It ends early where the request is cancelled or its deadline passes.
    func work(on request: OpenRequest, _ step: @escaping () throws(StoreError) -> SliceStep) {
        guard !isClosed, session.isOpen(request) else { return }
        let until = Loop.monotonicNanoseconds &+ Connection.sliceNanoseconds
        do throws(StoreError) {
            while true {
                switch try step() {
                case .done:
                    flush()
                    return host.finishIfDrained(self)
                case .cold(let read):
                    return host.read(read) { [weak self] in self?.work(on: request, step) }
                case .more:
                    if Loop.monotonicNanoseconds < until { continue }
                    return host.later { [weak self] in self?.work(on: request, step) }
                }
            }
        } catch {
            if session.end(request) { send(ErrorReply(.corrupt, message: "\(error)"), id: request.id) }
            flush()
            host.finishIfDrained(self)
        }
    }
}
