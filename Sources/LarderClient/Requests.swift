// The requests, one method each. All wait for the answer; all throw ClientError.

import LarderFormat
import LarderWire

extension LarderClient {
    // MARK: Reading

    /// The record of that key, or nil.
    public func get(kind: Int, key: [UInt8]) throws(ClientError) -> StoredRecord? {
        do throws(ClientError) { return try ask(Get(kind: kind, key: key), RecordReply.self).stored } catch {
            if error.number == .notFound { return nil }
            throw error
        }
    }

    /// One page of records: of a kind or of all, those that meet a condition, in saved order or that of a field. For all
    /// pages see `forEachRecord`.
    ///
    /// - Throws: also `larder` with `bad_condition`, whose place is 1 + the offset in the condition's bytes.
    public func list(_ list: List) throws(ClientError) -> Page { try ask(list, Page.self) }

    /// How many records there are, kind by kind.
    ///
    /// - Parameters:
    ///   - kind: 0: all.
    ///   - condition: SPEC.md section 17; empty: every record.
    public func count(kind: Int = 0, condition: String = "") throws(ClientError) -> [KindCount] {
        try ask(Count(kind: kind, condition: condition), Counted.self).counts
    }

    /// How many records of a kind have each value of a field, most first; of a list field each of its texts.
    ///
    /// - Parameters:
    ///   - kind: not 0.
    ///   - condition: SPEC.md section 17; empty: every record.
    /// - Throws: also `larder` with `too_many_groups`, over 10,000 values, or 2 MiB of them.
    public func countGroups(kind: Int, by field: Int, condition: String = "") throws(ClientError) -> [GroupCount] {
        try ask(Count(kind: kind, condition: condition, group: field), Counted.self).groups
    }

    /// The records with a value in an indexed field, in saved order, at most 1,000. Text is compared folded.
    public func find(_ find: Find) throws(ClientError) -> Found { try ask(find, Found.self) }

    /// One page of the records with a text, the best first. For all pages see `forEachMatch`.
    public func search(_ search: Search) throws(ClientError) -> Matches { try ask(search, Matches.self) }

    /// What the log still holds of a key, newest first, also after a delete. Where entries are large the oldest are left
    /// out; each entry but the first names the one before it, which `forEachEntry` can get.
    ///
    /// - Parameter limit: 1 … 1,000.
    public func history(kind: Int, key: [UInt8], limit: Int = 1_000) throws(ClientError) -> [EntryRun] {
        try ask(History(kind: kind, key: key, limit: limit), HistoryIs.self).runs
    }

    /// Entries by their seqs, 1 … 1,000, those that the log still holds, in the order asked for. The last ones are left out
    /// where they are large; `forEachEntry` asks again for them.
    public func entries(_ seqs: [UInt64]) throws(ClientError) -> [EntryRun] {
        try ask(Entries(seqs), EntriesAre.self).runs
    }

    /// Declares a kind, or adds to one. Durable on return.
    ///
    /// - Throws: also `larder` with `kind_conflict`, whose message says both sides.
    public func define(_ draft: KindDraft) throws(ClientError) -> Defined { try ask(Define(draft), Defined.self) }

    public func kinds() throws(ClientError) -> [Kind] { try ask(Kinds(), KindList.self).kinds }

    public func origins(after: UInt64 = 0, limit: Int = 1_000) throws(ClientError) -> [OriginList.Origin] {
        try ask(Origins(after: after, limit: limit), OriginList.self).origins
    }

    public func status() throws(ClientError) -> StatusIs { try ask(Status(), StatusIs.self) }

    public func ping(_ bytes: [UInt8] = []) throws(ClientError) {
        let pong = try ask(Ping(bytes), Pong.self)
        guard pong.bytes == bytes else { throw connection.violation("PONG with other bytes than PING's") }
    }

    // MARK: Writing

    /// Sends what the builder holds, resets it, and waits until it is durable. For much, see `BulkWriter`.
    public func write(
        _ builder: inout WriteBuilder, flags: WriteFlags = [], origin: UInt64 = 0, batch: UInt64 = 0
    ) throws(ClientError) -> Written {
        let id = takeId()
        let frame = builder.finish(id: id, flags: flags, origin: origin, batch: batch)
        try connection.send(frame, until: requestDeadline)
        builder.reset()
        return try answer(to: .write, id: id) { (frame) throws(ClientError) in
            try LarderClient.decode(Written.self, frame, self.connection)
        }
    }

    public func beginImport(source: String, token: String = "") throws(ClientError) -> ImportBegun {
        try ask(BeginImport(source: source, token: token), ImportBegun.self)
    }

    /// - Returns: the seq of the entry.
    @discardableResult
    public func endImport(
        origin: UInt64, outcome: ImportOutcome, counts: ImportCounts
    ) throws(ClientError) -> UInt64 {
        try ask(EndImport(origin: origin, outcome: outcome, counts: counts), ImportEnded.self).seq
    }

    /// Deletes every record of a kind; all or none.
    ///
    /// - Parameters:
    ///   - kind: 0: all.
    ///   - progress: how far it is, now and then. May not use this client.
    public func clear(
        kind: Int, progress: (Progress) -> Void = { _ in }
    ) throws(ClientError) -> Cleared {
        try request(Clear(kind: kind)) { (frame) throws(ClientError) in
            guard frame.header.messageType == .progress else {
                throw self.connection.violation("type \(frame.header.type) within CLEAR")
            }
            progress(try LarderClient.decode(Progress.self, frame, self.connection))
        } _: { (frame) throws(ClientError) in
            try LarderClient.decode(Cleared.self, frame, self.connection)
        }
    }

    /// Rewrites the log without what is not needed any more; takes purged keys out of it.
    ///
    /// - Parameter progress: how far it is, in segments, at least once a second. May not use this client.
    /// - Throws: also `larder` with `busy`, and with `conflict` where a purged key has a record, whose place is 1 + the key's
    ///   position.
    public func compact(
        _ compact: Compact, progress: (Progress) -> Void = { _ in }
    ) throws(ClientError) -> Compacted {
        try request(compact) { (frame) throws(ClientError) in
            guard frame.header.messageType == .progress else {
                throw self.connection.violation("type \(frame.header.type) within COMPACT")
            }
            progress(try LarderClient.decode(Progress.self, frame, self.connection))
        } _: { (frame) throws(ClientError) in
            try LarderClient.decode(Compacted.self, frame, self.connection)
        }
    }

    // MARK: Plugins and the host

    public func register(_ register: Register) throws(ClientError) -> Registered {
        try ask(register, Registered.self)
    }

    /// A plugin that the host started says so within 10 s.
    public func ready() throws(ClientError) { try connection.send(Ready(), id: 0, until: requestDeadline) }

    /// - Returns: the plugin's state.
    public func plugin(_ name: String, _ action: Plugin.Action) throws(ClientError) -> String {
        try ask(Plugin(name: name, action: action), PluginDone.self).state
    }

    /// Asks a transient host to stop; another throws `not_permitted`.
    public func giveWay() throws(ClientError) { _ = try ask(GiveWay(), GivingWay.self) }

    /// Says GOODBYE, waits until the host has sent what it owes, and closes. What it owes to others is dropped.
    public func goodbye(_ number: ErrorNumber? = nil, reason: String = "") throws(ClientError) {
        guard !connection.isClosed else { return }
        let deadline = requestDeadline
        defer { connection.close() }
        try connection.send(Goodbye(number, reason: reason), id: 0, until: deadline)
        while hostGoodbye == nil {
            do throws(ClientError) {
                guard try receive(until: deadline, { _ in true }) != nil else {
                    throw ClientError.timedOut(operation: "GOODBYE")
                }
            } catch {
                if hostGoodbye != nil || error == .connectionLost { return }
                throw error
            }
        }
    }
}
