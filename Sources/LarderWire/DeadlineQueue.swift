// When open requests of a connection run out of time.

/// Deadlines in the order in which they come: every request of a connection has the same time, so the oldest is first.
struct DeadlineQueue: Sendable {
    private struct Item {
        var request: OpenRequest
        var deadline: Int64
    }

    private var items: [Item] = []
    /// Items before it are done with.
    private var head = 0

    /// - Parameter isOpen: whether a request still waits; those that do not are dropped when they come to be many.
    mutating func append(_ request: OpenRequest, deadline: Int64, openCount: Int, isOpen: (OpenRequest) -> Bool) {
        items.append(Item(request: request, deadline: deadline))
        guard items.count > 2 * openCount + 64 else { return }
        items.removeSubrange(..<head)
        head = 0
        items.removeAll { !isOpen($0.request) }
    }

    /// The deadline of the oldest request that is open.
    mutating func next(isOpen: (OpenRequest) -> Bool) -> Int64? {
        while head < items.count, !isOpen(items[head].request) { head += 1 }
        return head < items.count ? items[head].deadline : nil
    }

    /// The oldest request that is open and whose deadline is not after `now`. Stays in the queue until it is ended.
    mutating func expired(now: Int64, isOpen: (OpenRequest) -> Bool) -> OpenRequest? {
        guard let deadline = next(isOpen: isOpen), deadline <= now else { return nil }
        return items[head].request
    }
}
