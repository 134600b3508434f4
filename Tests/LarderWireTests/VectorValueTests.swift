// Fields of the shared messages, where two of the same type could be mistaken for each other.

import LarderFormat
import LarderWire
import Testing

@Suite("vector values")
struct VectorValueTests {
    private func each<M: WireMessage>(_: M.Type, _ check: (M, [String: Any]) throws -> Void) throws {
        try SharedFiles.eachMessage(M.type) { body, value in
            try check(try body.withUnsafeBytes { try M(body: $0) }, value)
        }
    }

    private func expect(_ stored: StoredRecord, _ value: [String: Any]) {
        let header = stored.header
        #expect(header.kind == value.int("kind") && header.seq == value.u64("seq"))
        #expect(header.firstSeq == value.u64("first_seq") && header.origin == value.u64("origin"))
        #expect(header.savedAt == Int64(value.int("saved_at")) && header.changedAt == Int64(value.int("changed_at")))
        #expect(stored.record == value.hex("record"))
    }

    @Test("HELLO and WELCOME")
    func greeting() throws {
        try each(Hello.self) { hello, value in
            #expect(hello.versionMin == value.int("version_min") && hello.versionMax == value.int("version_max"))
            #expect(hello.name == value.text("name") && hello.version == value.text("version"))
            #expect(hello.required == value.texts("required") && hello.optional == value.texts("optional"))
            #expect(hello.deadlineMilliseconds == value.int("deadline") && hello.token == value.hex("token"))
        }
        try each(Welcome.self) { welcome, value in
            #expect(welcome.hostName == value.text("host") && welcome.hostVersion == value.text("host_version"))
            #expect(welcome.epoch == value.u64("epoch") && welcome.lastSeq == value.u64("last_seq"))
            #expect(
                welcome.floor == value.u64("floor") && welcome.limits.recordByteCountMax == value.int("record_limit"))
            #expect(welcome.limits.batchByteCountMax == value.int("batch_limit"))
            #expect(welcome.limits.frameBodyByteCountMax == value.int("frame_limit"))
            #expect(welcome.limits.openRequestCountMax == value.int("open_requests_limit"))
            #expect(welcome.limits.creditByteCountMax == value.int("credit_limit"))
        }
    }

    @Test("the counts of imports and batches")
    func counts() throws {
        try each(EndImport.self) { end, value in
            let counts = value
            let found = end.counts
            #expect(found.read == counts.int("read") && found.created == counts.int("created"))
            #expect(found.updated == counts.int("updated") && found.unchanged == counts.int("unchanged"))
            #expect(found.duplicate == counts.int("duplicate") && found.alreadySaved == counts.int("already_saved"))
            #expect(found.skipped == counts.int("skipped") && found.refused == counts.int("refused"))
        }
        try each(Written.self) { written, value in
            let counts = value
            let found = written.counts
            #expect(found.created == counts.int("created") && found.updated == counts.int("updated"))
            #expect(found.unchanged == counts.int("unchanged") && found.duplicate == counts.int("duplicate"))
            #expect(found.alreadySaved == counts.int("already_saved") && found.notFound == counts.int("not_found"))
            #expect(found.deleted == counts.int("deleted") && found.refused == counts.int("refused"))
            for (refusal, row) in zip(written.refusals, value.objects("refusals")) {
                #expect(refusal.position == row.int("position") && refusal.rawNumber == row.int("error"))
                #expect(refusal.field == row.int("field") && refusal.offset == row.int("offset"))
            }
        }
    }

    @Test("stored records, subscriptions, spans and errors")
    func others() throws {
        try each(RecordReply.self) { expect($0.stored, $1.object("record")) }
        try each(Page.self) { page, value in
            for (stored, row) in zip(page.records, value.objects("records")) { expect(stored, row) }
        }
        try each(Progress.self) { #expect($0.done == $1.int("done") && $0.total == $1.int("total")) }
        try each(Lost.self) { #expect($0.after == $1.u64("after") && $0.through == $1.u64("through")) }
        try each(Subscribed.self) { subscribed, value in
            #expect(subscribed.epoch == value.u64("epoch") && subscribed.after == value.u64("after"))
            #expect(subscribed.s0 == value.u64("s0") && subscribed.floor == value.u64("floor"))
        }
        try each(Subscribe.self) { subscribe, value in
            switch subscribe.start {
            case .after(let cursor): #expect(cursor == Cursor(epoch: value.u64("epoch"), seq: value.u64("seq")))
            case .resumedSnapshot(let cursor, let s0):
                #expect(cursor == Cursor(epoch: value.u64("epoch"), seq: value.u64("seq")) && s0 == value.u64("s0"))
            case .now, .snapshot: #expect(value["epoch"] == nil)
            }
            #expect(Int(subscribe.types.rawValue) == value.int("types") && subscribe.credit == value.u64("credit"))
        }
        try each(ErrorReply.self) { reply, value in
            #expect(reply.rawNumber == value.int("error") && reply.place == value.int("place"))
            #expect(reply.field == value.text("field") && reply.message == value.text("message"))
        }
        try each(StatusIs.self) { status, value in
            #expect(status.state == value.text("state") && status.reason == value.text("reason"))
            #expect(status.library == value.text("library") && status.socket == value.text("socket"))
            #expect(status.lastSeq == value.u64("last_seq") && status.floor == value.u64("floor"))
            #expect(status.segments == value.int("segments") && status.logByteCount == value.int("log_bytes"))
        }
    }
}
