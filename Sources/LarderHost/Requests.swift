// What each message asks of the host. Writes are in Writes.swift.

import LarderFormat
import LarderLoop
import LarderStore
import LarderWire

extension Connection {
    /// Performs one frame. When it has to wait, the connection is paused and the frame stays at the front.
    func handle(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) {
        switch session.received(header) {
        case .ignore: return
        case .refuse(.requestInUse):
            // With the id it would look like the final reply of the request that has it.
            var reply = session.reply(.requestInUse, to: header)
            reply.facts.append(ErrorReply.Fact("id", "\(header.id)"))
            send(reply, id: 0)
        case .refuse(let number): send(session.reply(number, to: header), id: header.id)
        case .end(let number):
            var reply = session.reply(number, to: header)
            reply.flags.insert(.fatal)
            send(reply, id: header.id)
            closeWhenWritten()
        case .handle(let type):
            do throws(FormatError) {
                try perform(type, header.id, body)
            } catch {
                send(session.refusal(ofBody: error, of: type), id: type.role == .request ? header.id : 0)
                if session.state == .closed { closeWhenWritten() }
            }
        }
    }

    private func perform(_ type: MessageType, _ id: UInt32, _ body: UnsafeRawBufferPointer) throws(FormatError) {
        switch type {
        case .get: try get(id, body)
        case .write: try write(id, body)
        case .credit: credit(id, try Credit(body: body))
        case .list: list(id, try List(body: body))
        case .count: count(id, try Count(body: body))
        case .subscribe: subscribe(id, try Subscribe(body: body))
        case .sync: sync(id, try Sync(body: body))
        case .unsubscribe: unsubscribe(id, try Unsubscribe(body: body))
        case .ping: send(Pong(try Ping(body: body).bytes), id: id)
        case .cancel:
            _ = try Cancel(body: body)
            cancel(id)
        case .hello: hello(id, try Hello(body: body))
        case .register: register(id, try Register(body: body))
        case .ready:
            _ = try Ready(body: body)
            host.pluginReady(self)
        case .beginImport: try beginImport(id, body)
        case .endImport: try endImport(id, body)
        case .clear: clear(id, try Clear(body: body))
        case .compact: compact(id, try Compact(body: body))
        case .kinds:
            _ = try Kinds(body: body)
            send(KindList(host.store.kinds), id: id)
        case .origins: origins(id, try Origins(body: body))
        case .status:
            _ = try Status(body: body)
            send(host.status(), id: id)
        case .plugin: plugin(id, try Plugin(body: body))
        case .giveWay:
            _ = try GiveWay(body: body)
            giveWay(id)
        case .find: find(id, try Find(body: body))
        case .search: search(id, try Search(body: body))
        case .history: history(id, try History(body: body))
        case .entries: entries(id, try Entries(body: body))
        case .define: define(id, try Define(body: body))
        case .goodbye: goodbye(try Goodbye(body: body))
        default: break
        }
    }

    // MARK: Greeting

    private func hello(_ id: UInt32, _ hello: Hello) {
        if !hello.token.isEmpty {
            guard let plugin = host.plugin(forToken: hello.token) else {
                send(session.end(ErrorReply(.badToken, message: "the token of HELLO is none, or was used")), id: id)
                return closeWhenWritten()
            }
            pluginName = plugin
        }
        switch session.received(hello) {
        case .end(let reply):
            send(reply, id: id)
            closeWhenWritten()
        case .welcome(let version, let capabilities):
            name = pluginName.isEmpty ? hello.name : pluginName
            self.version = hello.version
            host.greeted(self)
            send(
                Welcome(
                    version: version, hostVersion: host.options.version, capabilities: capabilities,
                    epoch: host.store.epoch, lastSeq: host.store.lastSeq, floor: host.store.comingFloor,
                    limits: session.limits),
                id: id)
        }
    }

    private func register(_ id: UInt32, _ register: Register) {
        if !register.condition.isEmpty {
            return send(ErrorReply(.unsupported, message: "conditions are not in this draft"), id: id)
        }
        if let unknown = register.kinds.first(where: { name in !host.store.kinds.contains { $0.name == name } }) {
            return send(ErrorReply(.unknownKind, message: "the library has no kind \(unknown)"), id: id)
        }
        session.accepted(register)
        self.register = register
        send(
            Registered(
                name: name,
                settings: host.settings(of: pluginName).map { Registered.Setting(name: $0.name, json: $0.json) }),
            id: id)
    }

    private func goodbye(_ goodbye: Goodbye) {
        for subscription in subscriptions { host.remove(subscription, of: self) }
        host.pluginSaidGoodbye(self)
        host.finishIfDrained(self)
    }

    // MARK: Reading

    private func get(_ id: UInt32, _ body: UnsafeRawBufferPointer) throws(FormatError) {
        var reader = ByteReader(body)
        let view = try GetView(from: &reader)
        get(id, nil, kind: view.kind, key: view.key)
    }

    /// - Parameter request: nil the first time; set when the read waited for the disk.
    private func get(_ id: UInt32, _ request: OpenRequest?, kind: Int, key: UnsafeRawBufferPointer) {
        let result: GetResult
        do throws(StoreError) { result = try host.store.get(kind: kind, key: key) } catch {
            if let request, !session.end(request) { return }
            return send(host.corrupt(error), id: id)
        }
        switch result {
        case .cold(let read):
            let request = request ?? session.begin(id, now: host.now)
            let kept = Array(key)
            host.read(read) { [weak self] in
                guard let self, !isClosed, session.isOpen(request) else { return }
                kept.withUnsafeBytes { self.get(id, request, kind: kind, key: $0) }
                flush()
                host.finishIfDrained(self)
            }
        case .missing:
            if let request, !session.end(request) { return }
            send(absence(kind: kind, key: key), id: id)
        case .found(let stored):
            if let request, !session.end(request) { return }
            let head = StoredRecordHeader(stored)
            let room = output.room(FrameHeader.byteCount + StoredRecordHeader.byteCountMax + stored.record.count)
            if let at = room.baseAddress { output.filled(head.encodeFrame(stored.record, id: id, into: at)) }
        }
    }

    /// Why there is no record: a key that is none has none, so it is looked at only now.
    private func absence(kind: Int, key: UnsafeRawBufferPointer) -> ErrorReply {
        guard let schema = host.store.schema(kind) else { return unknownKind(kind) }
        do throws(FormatError) { try schema.checkKey(key) } catch {
            let field = schema.kind.field(error.field)?.name ?? ""
            return ErrorReply(.badKey, place: error.offset + 1, field: field, message: "\(error)")
        }
        return ErrorReply(.notFound, message: "no record has this key")
    }

    private func list(_ id: UInt32, _ list: List) {
        guard list.kind == 0 || host.store.kind(list.kind) != nil else { return send(unknownKind(list.kind), id: id) }
        guard (1...10_000).contains(list.limit) else {
            return send(
                ErrorReply(.badMessage, message: "LIST: the limit must be 1 to 10000, not \(list.limit)"), id: id)
        }
        guard list.condition.isEmpty, list.order == 0 else { return scan(id, list) }
        var after: PageToken?
        if !list.token.isEmpty {
            after = list.token.withUnsafeBytes { PageToken($0) }
            guard let token = after, token.epoch == host.store.epoch, token.kind == list.kind,
                token.isReverse == list.isReverse
            else {
                return send(
                    ErrorReply(.badToken, message: "the page token is none of this library, kind and direction"), id: id
                )
            }
        }
        let byteLimit = PageBody.byteCount(wanted: list.byteCountMax)
        let cursor = PageCursor(
            kind: list.kind, isReverse: list.isReverse, limit: list.limit, byteLimit: byteLimit, after: after)
        page(id, nil, PageTask(cursor, PageBody(limit: list.limit, byteCountMax: byteLimit)))
    }

    private func page(_ id: UInt32, _ request: OpenRequest?, _ task: PageTask) {
        let step: PageStep
        do throws(StoreError) {
            step = try host.store.page(&task.cursor) { stored in task.body.add(stored) }
        } catch {
            if let request, !session.end(request) { return }
            return send(host.corrupt(error), id: id)
        }
        switch step {
        case .cold(let read):
            let request = request ?? session.begin(id, now: host.now)
            host.read(read) { [weak self] in
                guard let self, !isClosed, session.isOpen(request) else { return }
                page(id, request, task)
                flush()
                host.finishIfDrained(self)
            }
        case .done(let isEnd):
            if let request, !session.end(request) { return }
            var token: [UInt8]?
            if !isEnd {
                token =
                    PageToken(
                        epoch: host.store.epoch, kind: task.cursor.kind, isReverse: task.cursor.isReverse,
                        firstSeq: task.cursor.lastFirstSeq ?? 0
                    ).encoded
            }
            output.append(task.body.frame(.page, id: id, token: token))
        }
    }

    private func count(_ id: UInt32, _ count: Count) {
        guard count.kind == 0 || host.store.kind(count.kind) != nil else {
            return send(unknownKind(count.kind), id: id)
        }
        guard count.condition.isEmpty, count.group == 0 else { return scan(id, count) }
        send(Counted(host.store.counts(kind: count.kind).map { KindCount(kind: $0.kind, count: $0.count) }), id: id)
    }

    private func origins(_ id: UInt32, _ origins: Origins) {
        let rows = host.store.origins.drop { $0.number <= origins.after }.prefix(max(1, min(origins.limit, 10_000)))
        send(
            OriginList(
                rows.map { OriginList.Origin(number: $0.number, name: $0.name, token: $0.token, time: $0.time) }),
            id: id)
    }

    func unknownKind(_ kind: Int) -> ErrorReply {
        ErrorReply(.unknownKind, message: "the library has no kind \(kind); KINDS names those that it has")
    }

    // MARK: Subscriptions

    private func subscribe(_ id: UInt32, _ subscribe: Subscribe) {
        if subscribe.wantsLastRecord || !subscribe.condition.isEmpty {
            let what = subscribe.wantsLastRecord ? "the last record with a deleted event" : "a condition"
            return send(ErrorReply(.unsupported, message: "\(what) is not in this draft"), id: id)
        }
        if let unknown = subscribe.kinds.first(where: { host.store.kind($0) == nil }) {
            return send(unknownKind(unknown), id: id)
        }
        guard !subscribe.types.isEmpty else {
            return send(ErrorReply(.badMessage, message: "SUBSCRIBE: no type of entry is asked for"), id: id)
        }
        var after = host.store.lastSeq
        var s0: UInt64 = 0
        switch subscribe.start {
        case .now: break
        case .snapshot:
            s0 = host.store.lastSeq
            after = 0
        case .after(let cursor):
            guard host.store.check(epoch: cursor.epoch, seq: cursor.seq) == .good else {
                return send(expired(cursor), id: id)
            }
            after = cursor.seq
        case .resumedSnapshot(let cursor, let snapshot):
            // Unlike an ordinary cursor its seq may lie below the floor: what is current now is sent again.
            let seq = max(cursor.seq, host.store.floor &- 1)
            guard host.store.check(epoch: cursor.epoch, seq: seq) == .good, cursor.seq <= host.store.lastSeq,
                // Behind S0 it is a cursor like others: the floor may have passed S0.
                host.store.check(epoch: cursor.epoch, seq: max(cursor.seq, snapshot)) == .good
            else { return send(expired(cursor), id: id) }
            after = cursor.seq
            s0 = snapshot
        }
        let filter = EntryFilter(
            types: Int(subscribe.types.rawValue), kinds: subscribe.kinds.isEmpty ? nil : Set(subscribe.kinds),
            exceptOrigin: subscribe.exceptOrigin)
        var isSnapshot = false
        switch subscribe.start {
        case .snapshot, .resumedSnapshot: isSnapshot = true
        default: break
        }
        let subscription = Subscription(
            id: id, cursor: host.store.cursor(after: after, snapshotSeq: s0), filter: filter,
            credit: Int(clamping: min(subscribe.credit, UInt64(session.limits.creditByteCountMax))),
            snapshotSeq: isSnapshot ? s0 : nil, now: host.loop.now)
        if host.options.canary == .resumesLate, !isSnapshot, after < host.store.lastSeq {
            subscription.cursor = host.store.cursor(after: after + 1)
        }
        session.beginSubscription(id)
        subscriptions.append(subscription)
        send(Subscribed(epoch: host.store.epoch, after: after, s0: s0, floor: host.store.comingFloor), id: id)
        host.wantsAnotherTurn(self)
    }

    private func expired(_ cursor: Cursor) -> ErrorReply { host.expired(cursor, floor: host.store.comingFloor) }

    private func credit(_ id: UInt32, _ credit: Credit) {
        guard let subscription = subscriptions.first(where: { $0.id == id }) else { return }
        let limit = session.limits.creditByteCountMax
        let (sum, overflow) = subscription.credit.addingReportingOverflow(Int(clamping: credit.byteCount))
        subscription.credit = overflow ? limit : min(sum, limit)
        host.wantsAnotherTurn(self)
    }

    private func sync(_ id: UInt32, _ sync: Sync) {
        guard let subscription = subscriptions.first(where: { $0.id == sync.subscription }) else {
            return send(unknownSubscription(sync.subscription), id: id)
        }
        subscription.syncs.append((session.begin(id, now: host.now), host.store.lastSeq))
        host.wantsAnotherTurn(self)
    }

    private func unsubscribe(_ id: UInt32, _ unsubscribe: Unsubscribe) {
        guard let subscription = subscriptions.first(where: { $0.id == unsubscribe.subscription }) else {
            return send(unknownSubscription(unsubscribe.subscription), id: id)
        }
        host.remove(subscription, of: self)
        send(Unsubscribed(through: subscription.sentThrough), id: id)
    }

    private func unknownSubscription(_ id: UInt32) -> ErrorReply {
        ErrorReply(.unknownSubscription, message: "\(id) is no subscription of this connection")
    }

    private func cancel(_ id: UInt32) {
        guard let request = session.openRequest(id), host.cancel(request, of: self) else { return }
        if session.end(request) { send(ErrorReply(.cancelled, message: "cancelled by the client"), id: id) }
        host.finishIfDrained(self)
    }

    // MARK: Administration

    private func plugin(_ id: UInt32, _ plugin: Plugin) {
        switch host.perform(plugin) {
        case .success(let state): send(PluginDone(state: state), id: id)
        case .failure(let error): send(error, id: id)
        }
    }

    private func giveWay(_ id: UInt32) {
        guard host.options.isTransient else {
            return send(ErrorReply(.notPermitted, message: "this host was started to stay"), id: id)
        }
        send(GivingWay(), id: id)
        host.stop(reason: "a host that stays takes over")
    }
}

/// A page under way.
final class PageTask {
    var cursor: PageCursor
    var body: PageBody

    init(_ cursor: PageCursor, _ body: PageBody) {
        self.cursor = cursor
        self.body = body
    }
}

extension StoredRecordHeader {
    init(_ stored: LarderStore.StoredRecord) {
        self.init(
            kind: stored.kind, seq: stored.seq, firstSeq: stored.firstSeq, savedAt: stored.savedAt,
            changedAt: stored.changedAt, origin: stored.origin)
    }
}
