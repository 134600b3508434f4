// Targets of the wire: frames as they come, the bodies of all messages, a session that is sent them.

import LarderFormat
import LarderWire

/// A stream of frames, given to the decoder whole, and to a session.
func fuzzFrame(_ bytes: UnsafeRawBufferPointer) {
    var session = Session()
    _ = Preface.check(bytes)
    if case .needMore = session.received(preface: UnsafeRawBufferPointer(rebasing: bytes.prefix(8))) { return }
    var rest = UnsafeRawBufferPointer(rebasing: bytes.dropFirst(8))
    for _ in 0..<64 {
        do throws(FrameError) {
            switch try FrameDecoder.next(rest, limit: session.frameBodyByteCountMax) {
            case .needMore(let count):
                must(count > rest.count, "a decoder wants \(count) bytes and has \(rest.count)")
                return
            case .frame(let header, let body):
                must(body.upperBound <= rest.count, "a frame reaches past what is there")
                _ = session.received(header)
                if header.type == MessageType.hello.rawValue,
                    let hello = try? Hello(body: UnsafeRawBufferPointer(rebasing: rest[body]))
                {
                    _ = session.received(hello, capabilities: ["a"])
                }
                _ = session.nextDeadline()
                rest = UnsafeRawBufferPointer(rebasing: rest[body.upperBound...])
            }
        } catch {
            _ = session.received(error)
            return
        }
    }
}

/// A type's number, then a body.
func fuzzMessage(_ bytes: UnsafeRawBufferPointer) {
    let (head, body) = bytes.split(1)
    guard let number = head.first else { return }
    let decoders = MessageDecoders.all
    decoders[Int(number) % decoders.count](body)
}

enum MessageDecoders {
    nonisolated(unsafe) static let all: [Target] = [
        again(ErrorReply.self), again(Kinds.self), again(KindList.self), again(Register.self), again(Registered.self),
        again(Ready.self), again(History.self), again(Entries.self), again(HistoryIs.self), again(EntriesAre.self),
        again(EndImport.self), again(ImportEnded.self), again(List.self), again(Page.self), again(Subscribe.self),
        again(Subscribed.self), again(Origins.self), again(OriginList.self), again(Written.self), again(Get.self),
        again(RecordReply.self), again(SnapshotEnd.self), again(Lost.self), again(Credit.self), again(Sync.self),
        again(Synced.self), again(Unsubscribe.self), again(Unsubscribed.self), again(Search.self), again(Matches.self),
        again(Define.self), again(Defined.self), again(Status.self), again(StatusIs.self), again(BeginImport.self),
        again(ImportBegun.self), again(Count.self), again(Counted.self), again(Plugin.self), again(PluginDone.self),
        again(GiveWay.self), again(GivingWay.self), again(Ping.self), again(Pong.self), again(Cancel.self),
        again(Hello.self), again(Welcome.self), again(Goodbye.self), again(HostGoodbye.self), again(Find.self),
        again(Found.self), again(Clear.self), again(Progress.self), again(Cleared.self), again(Compact.self),
        again(Compacted.self), write, events,
    ]

    /// What decodes is written as the same bytes: there is one encoding.
    private static func again<M: WireMessage>(_: M.Type) -> Target {
        { body in
            guard let message = try? M(body: body) else { return }
            var writer = ByteWriter()
            message.encode(into: &writer)
            must(writer.bytes.elementsEqual(body), "\(M.self) is written with other bytes: \(message)")
        }
    }

    nonisolated(unsafe) private static let write: Target = { body in
        guard var operations = try? OperationReader(body: body) else { return }
        let checks = (try? operations.check()) != nil
        var count = 0
        while let operation = try? operations.next() {
            _ = operation.unsetFieldNumbers
            count += 1
        }
        must(!checks || count == operations.header.operationCount, "a checked WRITE has \(count) operations")
    }

    nonisolated(unsafe) private static let events: Target = { body in
        guard var runs = try? RunReader(body: body) else { return }
        while let run = try? runs.next() {
            var entries = run.entryBytes
            while let entry = try? entries.next(), let base = entry.baseAddress {
                _ = try? readEntry(
                    base: base, offset: 0, end: entry.count, commitFirstSeq: run.header.firstSeq,
                    commitTime: run.header.time)
            }
        }
    }
}
