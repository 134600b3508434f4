// One run of `events`: a subscription, and the next one after a lost connection.

import LarderClient
import LarderWire

final class Following {
    /// How often it is asked whether Ctrl-C came.
    private static let waitMilliseconds = 250

    private let session: Session
    private let printer: EventPrinter
    private let types: EntryTypes
    private let kinds: [Int]
    private let isFollowing: Bool

    init(_ session: Session, _ printer: EventPrinter, _ types: EntryTypes, _ kinds: [Int], isFollowing: Bool) {
        self.session = session
        self.printer = printer
        self.types = types
        self.kinds = kinds
        self.isFollowing = isFollowing
    }

    /// - Returns: the exit code.
    func run(_ start: Subscribe.Start) throws -> Int32 {
        var start = start
        while true {
            let subscription = try attempt("subscribing") {
                try Subscription(session.client, start, types: types, kinds: kinds)
            }
            let loss: ClientError
            do throws(ClientError) {
                try isFollowing ? follow(subscription) : catchUp(subscription)
                printer.finish(subscription.cursor)
                Interrupt.release()
                return 0
            } catch { loss = error }
            guard isFollowing, loss == .connectionLost else {
                printer.finish(subscription.cursor)
                throw Failure("following the log", loss)
            }
            start =
                subscription.snapshotStart.map { .resumedSnapshot(subscription.cursor, s0: $0) }
                ?? .after(subscription.cursor)
            do throws(ClientError) { _ = try session.reconnect(after: loss) } catch {
                printer.finish(subscription.cursor)
                throw Failure("following the log", "the host is gone", "go on later with --from \(subscription.cursor)")
            }
        }
    }

    /// Everything that was committed before this call.
    private func catchUp(_ subscription: Subscription) throws(ClientError) {
        _ = try subscription.sync { printer.take($0) }
        try subscription.unsubscribe { printer.take($0) }
    }

    /// Until Ctrl-C.
    private func follow(_ subscription: Subscription) throws(ClientError) {
        while !Interrupt.isPending {
            let step = try subscription.receive(timeoutMilliseconds: Following.waitMilliseconds) { printer.take($0) }
            if step == .ended { throw .connectionLost }
        }
    }
}
