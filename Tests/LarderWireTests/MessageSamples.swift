// One or more values of every message, for the tests that hold of all of them.

import LarderFormat
import LarderWire
import Testing

/// A message as bytes, and how to read and write it again without knowing its type.
struct MessageSample: CustomTestStringConvertible, Sendable {
    let type: MessageType
    let body: [UInt8]
    /// Decodes and encodes again.
    let recode: @Sendable (UnsafeRawBufferPointer) throws -> [UInt8]

    init<M: WireMessage>(_ message: M) {
        type = M.type
        var writer = ByteWriter()
        message.encode(into: &writer)
        body = writer.bytes
        recode = { body in
            let decoded = try M(body: body)
            var writer = ByteWriter()
            decoded.encode(into: &writer)
            return writer.bytes
        }
    }

    /// WRITE, which is read in place.
    init(write body: [UInt8]) {
        type = .write
        self.body = body
        recode = { try WriteSample.recode($0) }
    }

    /// EVENTS, which is read in place.
    init(events body: [UInt8]) {
        type = .events
        self.body = body
        recode = { body in
            var writer = ByteWriter()
            var runs = try RunReader(body: body)
            runs.header.encode(into: &writer)
            while let run = try runs.next() {
                run.header.encode(into: &writer)
                var entries = run.entryBytes
                while let entry = try entries.next() { writer.raw(entry) }
            }
            return writer.bytes
        }
    }

    var testDescription: String { "\(type.name), \(body.count) bytes" }

    func recode(_ bytes: [UInt8]) throws -> [UInt8] { try bytes.withUnsafeBytes { try recode($0) } }
}

/// Operations as values, encoded by hand so that WriteBuilder is tested against something else.
enum WriteSample {
    static func encode(_ operation: Operation, into writer: inout ByteWriter) {
        writer.u8(operation.action.rawValue)
        writer.u8(operation.mode?.rawValue ?? 0)
        writer.u8(operation.options.rawValue)
        writer.varint(operation.kind)
        writer.varint(operation.known)
        if operation.options.contains(.ifSeq) { writer.varint(operation.ifSeq) }
        if operation.options.contains(.unlessExists) { writer.varint(operation.unlessExists) }
        if operation.options.contains(.unset) {
            writer.varint(operation.unsetFieldNumbers.count)
            for number in operation.unsetFieldNumbers { writer.varint(number) }
        }
        if operation.action == .move { writer.byteString(operation.oldKey) }
        if operation.action == .restore {
            writer.varint(operation.firstSeq)
            writer.svarint(operation.savedAt)
        }
        writer.byteString(operation.payload)
    }

    static func recode(_ body: UnsafeRawBufferPointer) throws -> [UInt8] {
        var operations = try OperationReader(body: body)
        try operations.check()
        var writer = ByteWriter()
        operations.header.encode(into: &writer)
        while let operation = try operations.next() { encode(operation, into: &writer) }
        return writer.bytes
    }

    static let all: [UInt8] = {
        var writer = ByteWriter()
        WriteHeader(flags: [.atomic, .results], origin: 300, batch: 70_000, operationCount: 9).encode(into: &writer)
        for bytes: [UInt8] in [
            [1, 1, 0, 1, 24, 3, 9, 8, 7],
            [1, 2, 7, 0x80, 1, 24, 0xAC, 2, 5, 1, 0xFF],
            [1, 3, 8, 2, 9, 2, 3, 0x80, 2, 0],
            [1, 4, 1, 2, 9, 0],
            [2, 0, 2, 3, 0, 0, 2, 0x61, 0x62],
            [3, 0, 0, 1, 33, 2, 0x61, 0x62, 3, 9, 8, 7],
            [3, 0, 7, 1, 33, 0xAC, 2, 4, 1, 0x61, 1, 9],
            [4, 0, 0, 2, 0, 44, 3, 2, 9, 8],
            [4, 0, 5, 2, 0, 6, 0x80, 1, 0, 1, 9],
        ] { writer.raw(bytes) }
        return writer.bytes
    }()
}

enum Samples {
    static let kind = try! Kind(
        number: 3, name: "joke", version: 1, keyFieldCount: 1,
        fields: [
            Field(1, "id", .uuid, [.required]), Field(2, "body", .text, [.required, .notBlank]),
            Field(3, "category", .choice, choices: [Field.Choice(number: 1, name: "유행어")]),
        ], labelFields: [2])

    static let stored = StoredRecord(
        StoredRecordHeader(
            kind: 1, seq: 1_000_000, firstSeq: 7, savedAt: -5, changedAt: 1_700_000_000_000, origin: 2),
        record: [1, 1, 2, 0x41, 0x42])

    static let importCounts: ImportCounts = {
        var counts = ImportCounts()
        counts.read = 1_000
        counts.created = 990
        counts.refused = 10
        return counts
    }()

    static let writeCounts: WriteCounts = {
        var counts = WriteCounts()
        counts.created = 600
        counts.notFound = 1
        return counts
    }()

    static let status: StatusIs = {
        var status = StatusIs()
        status.reason = "why"
        status.pid = 77
        status.version = "0.1"
        status.library = "/l"
        status.epoch = .max
        status.started = -1
        status.records = [KindCount(kind: 1, count: 300)]
        status.sessions = [
            StatusIs.Session(
                id: 1, name: "n", version: "v", roles: [.importer, .notifier], events: .deleted, pid: 5,
                subscriptions: 1, lag: 9)
        ]
        status.plugins = [StatusIs.Plugin(name: "p", state: "ready", pid: 0, restarts: 2, lastError: "e")]
        status.reclaimableByteCount = 1 << 20
        return status
    }()

    static let events: [UInt8] = {
        var writer = ByteWriter()
        EventsHeader(after: 5, through: 9).encode(into: &writer)
        RunHeader(firstSeq: 6, time: -1, entriesByteCount: 7).encode(into: &writer)
        writer.raw([3, 1, 2, 3, 2, 1, 2])
        RunHeader(firstSeq: 8, time: 12, entriesByteCount: 2).encode(into: &writer)
        writer.raw([1, 0])
        return writer.bytes
    }()

    static let runs = [
        EntryRun(firstSeq: 6, time: -1, entry: [3, 1, 2, 3]), EntryRun(firstSeq: .max, time: 12, entry: [1, 0]),
    ]

    static let all: [MessageSample] = [
        MessageSample(
            Hello(
                name: "probe", version: "1", required: ["a"], optional: ["b", ""], deadlineMilliseconds: 300, token: [1]
            )),
        MessageSample(Welcome(hostVersion: "0.1", capabilities: ["a"], epoch: 1, lastSeq: 2, floor: 3)),
        MessageSample(
            Register(roles: [.importer, .exporter], events: .downloaded, kinds: ["title"], commands: ["fetch", "x"])),
        MessageSample(Registered(name: "n", settings: [Registered.Setting(name: "a", json: "{}")])),
        MessageSample(Ready()),
        MessageSample(BeginImport(source: "trending", token: "2026-11")),
        MessageSample(ImportBegun(origin: 9, lastBatch: 1 << 40, isResumed: true)),
        MessageSample(EndImport(origin: 9, outcome: .cancelled, counts: importCounts)),
        MessageSample(ImportEnded(seq: .max)),
        MessageSample(write: WriteSample.all),
        MessageSample(
            Written(
                seq: 5, counts: writeCounts,
                refusals: [Written.Refusal(position: 3, .blankField, field: 4, offset: 300, reason: "blank")],
                results: [Written.Result(.created, seq: 4, key: [1, 2]), Written.Result(.refused)])),
        MessageSample(Written(seq: 5, counts: writeCounts)),
        MessageSample(Get(kind: 1, key: [4, 0x74, 0x6D, 0x64, 0x62])),
        MessageSample(RecordReply(stored)),
        MessageSample(
            List(
                kind: 2, isReverse: true, limit: 10_000, byteCountMax: 300, token: [1, 2], condition: "watched exists",
                order: 256)),
        MessageSample(Page(isEnd: false, token: [7], records: [stored, stored])),
        MessageSample(Count(kind: 300, condition: "tags = a", group: 130)),
        MessageSample(Counted([KindCount(kind: 1, count: 5), KindCount(kind: 64, count: 0)])),
        MessageSample(
            Counted(
                [KindCount(kind: 1, count: 5)],
                groups: [GroupCount([2], count: 300), GroupCount(nil, count: 4), GroupCount([], count: 1)])),
        MessageSample(Find(kind: 1, field: 20, value: [2, 0x74, 0x74], limit: 1_000)),
        MessageSample(Found(isEnd: true, records: [stored])),
        MessageSample(Search(kind: 0, query: "매트릭스", limit: 128, token: [9])),
        MessageSample(Matches(isEnd: false, token: [1], matches: [Matches.Match(rank: 5, stored)])),
        MessageSample(History(kind: 300, key: [4, 0x74, 0x6D, 0x64, 0x62], limit: 1)),
        MessageSample(HistoryIs(runs)),
        MessageSample(Entries([9, 300, .max])),
        MessageSample(EntriesAre(runs)),
        MessageSample(Define(KindDraft(kind, number: 0, version: 0))),
        MessageSample(Defined(number: 64, version: 1, isChanged: true)),
        MessageSample(Clear(kind: 0)),
        MessageSample(Progress(done: 128, total: 1 << 30)),
        MessageSample(Cleared(deleted: 5, seq: 6)),
        MessageSample(Compact()),
        MessageSample(Compact(compression: .none)),
        MessageSample(
            Compact(
                historySince: .max, deadPercent: 100, includesLast: true, compression: .zstd,
                waitMilliseconds: 1 << 40, bytesPerSecond: 300,
                purged: [Compact.PurgedKey(kind: 1, key: [4, 0x74]), Compact.PurgedKey(kind: 300, key: [])])),
        MessageSample(
            Compacted(
                byteCountBefore: 1 << 40, byteCountAfter: 300, segmentCount: 9, rewrittenCount: 8, droppedCount: 70_000,
                removedAsideCount: 1, endedSubscriptionCount: 2, floor: .max, historySince: -1)),
        MessageSample(Kinds()),
        MessageSample(KindList([kind])),
        MessageSample(Origins(after: 200, limit: 10)),
        MessageSample(OriginList([OriginList.Origin(number: 1, name: "n", token: "t", time: -300)])),
        MessageSample(Subscribe(.after(Cursor(epoch: 1, seq: 2)), kinds: [1, 200], credit: .max)),
        MessageSample(Subscribe(.now, types: [.recovered, .imports], exceptOrigin: 5, credit: 0)),
        MessageSample(Subscribe(.snapshot, wantsLastRecord: true, condition: "x", credit: 1)),
        MessageSample(Subscribe(.resumedSnapshot(Cursor(epoch: 1, seq: 2), s0: 3), credit: 1)),
        MessageSample(Subscribed(epoch: 1, after: 2, s0: 3, floor: 4)),
        MessageSample(events: events),
        MessageSample(SnapshotEnd(s1: 4)),
        MessageSample(Lost(after: 1, through: 1)),
        MessageSample(Credit(byteCount: 1 << 20)),
        MessageSample(Sync(subscription: .max)),
        MessageSample(Synced(through: 4)),
        MessageSample(Unsubscribe(subscription: 1)),
        MessageSample(Unsubscribed(through: 4)),
        MessageSample(Ping(Array(repeating: 3, count: 64))),
        MessageSample(Pong([])),
        MessageSample(Cancel()),
        MessageSample(Status()),
        MessageSample(status),
        MessageSample(Plugin(name: "p", action: .forget)),
        MessageSample(PluginDone(state: "stopped")),
        MessageSample(GiveWay()),
        MessageSample(GivingWay()),
        MessageSample(Goodbye(.shuttingDown, reason: "r")),
        MessageSample(HostGoodbye()),
        MessageSample(
            ErrorReply(
                .cursorExpired, place: 4, field: "title", message: "gone", facts: [ErrorReply.Fact("floor", "7")])),
    ]
}
