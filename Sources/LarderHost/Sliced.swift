// Long reads, cut into slices between the other work of the loop: of about two milliseconds where nothing else waits, of
// one step where something does.

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
    /// Does the work of a request, step by step, until `step` says that it has answered. A step takes a fraction of a
    /// millisecond. It ends early where the request is cancelled or its deadline passes.
    func work(on request: OpenRequest, _ step: @escaping () throws(StoreError) -> SliceStep) {
        guard !isClosed, session.isOpen(request) else { return }
        guard let until = host.sliceEnd() else {
            return host.later { [weak self] in self?.work(on: request, step) }
        }
        do throws(StoreError) {
            while true {
                switch try step() {
                case .done:
                    flush()
                    return host.finishIfDrained(self)
                case .cold(let read):
                    return host.read(read) { [weak self] in self?.work(on: request, step) }
                case .more:
                    if host.loop.nanoseconds < until, !host.loop.hasEvents { continue }
                    return host.later { [weak self] in self?.work(on: request, step) }
                }
            }
        } catch {
            if session.end(request) { send(host.corrupt(error), id: request.id) }
            flush()
            host.finishIfDrained(self)
        }
    }
}

/// The time of a turn of the loop for work that can wait, all of it together.
struct TurnBudget {
    private static let nanoseconds: UInt64 = 2_000_000
    private var end: UInt64 = 0

    /// Until when work may go on, by the clock that `now` is of, in ns; nil when the turn's time is used up. The turn's first piece of
    /// work starts the clock.
    mutating func sliceEnd(at now: UInt64) -> UInt64? {
        if end == 0 { end = now &+ TurnBudget.nanoseconds }
        return now < end ? end : nil
    }

    mutating func turnEnds() { end = 0 }
}
