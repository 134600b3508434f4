// The fields of the shared messages that VectorValueTests leaves out.

import Foundation
import LarderFormat
import LarderWire
import Testing

@Suite("vector bodies")
struct VectorBodyTests {
    private func each<M: WireMessage>(_: M.Type, _ check: (M, [String: Any]) throws -> Void) throws {
        try SharedFiles.eachMessage(M.type) { body, value in
            try check(try body.withUnsafeBytes { try M(body: $0) }, value)
        }
    }

    @Test("roles, settings and imports")
    func roles() throws {
        try each(Register.self) { register, value in
            #expect(Int(register.roles.rawValue) == value.int("roles"))
            #expect(Int(register.events.rawValue) == value.int("events"))
            #expect(register.kinds == value.texts("kinds") && register.commands == value.texts("commands"))
            #expect(register.condition == value.text("condition"))
        }
        try each(Registered.self) { registered, value in
            #expect(registered.name == value.text("name"))
            let settings = value.objects("settings")
            #expect(registered.settings.map(\.name) == settings.map { $0.text("name") })
            #expect(registered.settings.map(\.json) == settings.map { $0.text("value") })
        }
        try each(BeginImport.self) { begin, value in
            #expect(begin.source == value.text("source") && begin.token == value.text("token"))
        }
        try each(ImportBegun.self) { begun, value in
            #expect(begun.origin == value.u64("origin") && begun.lastBatch == value.u64("last_batch"))
            #expect(begun.isResumed == (value.int("resumed") == 1))
        }
        try each(EndImport.self) { end, value in
            #expect(end.origin == value.u64("origin") && Int(end.outcome.rawValue) == value.int("outcome"))
        }
        try each(ImportEnded.self) { #expect($0.seq == $1.u64("seq")) }
    }

    @Test("operations and their results")
    func operations() throws {
        try SharedFiles.eachMessage(.write) { body, value in
            try body.withUnsafeBytes { body in
                var operations = try OperationReader(body: body)
                let header = operations.header
                #expect(Int(header.flags.rawValue) == value.int("flags") && header.origin == value.u64("origin"))
                #expect(header.batch == value.u64("batch"))
                let rows = value.objects("operations")
                #expect(header.operationCount == rows.count)
                for row in rows {
                    let operation = try #require(try operations.next())
                    #expect(Int(operation.action.rawValue) == row.int("verb"))
                    #expect(Int(operation.mode?.rawValue ?? 0) == row.int("mode"))
                    #expect(Int(operation.options.rawValue) == row.int("options"))
                    #expect(operation.kind == row.int("kind") && operation.known == row.int("known"))
                    if row["if_seq"] != nil { #expect(operation.ifSeq == row.u64("if_seq")) }
                    if row["unless_exists"] != nil { #expect(operation.unlessExists == row.int("unless_exists")) }
                    #expect(operation.unsetFieldNumbers == row["unset"] as? [Int] ?? [])
                    #expect(Array(operation.oldKey) == row.hex("old_key"))
                    #expect(operation.firstSeq == (row["first_seq"] == nil ? 0 : row.u64("first_seq")))
                    #expect(operation.savedAt == (row["saved_at"] == nil ? 0 : Int64(row.int("saved_at"))))
                    #expect(Array(operation.payload) == row.hex("body"))
                }
                #expect(try operations.next() == nil)
            }
        }
        try each(Written.self) { written, value in
            #expect(written.seq == value.u64("seq"))
            let refusals = value.objects("refusals")
            #expect(written.refusals.map(\.reason) == refusals.map { $0.text("reason") })
            let rows = value["results"] == nil ? [] : value.objects("results")
            #expect(written.results?.map { Int($0.outcome.rawValue) } ?? [] == rows.map { $0.int("outcome") })
            #expect(written.results?.map(\.seq) ?? [] == rows.map { $0.u64("seq") })
            #expect(written.results?.map(\.key) ?? [] == rows.map { $0.hex("key") })
        }
    }

    @Test("reads, counts, kinds and origins")
    func reads() throws {
        try each(Get.self) { #expect($0.kind == $1.int("kind") && $0.key == $1.hex("key")) }
        try each(List.self) { list, value in
            #expect(list.kind == value.int("kind") && list.isReverse == (value.int("flags") == 1))
            #expect(list.limit == value.int("limit") && list.byteCountMax == value.int("bytes_limit"))
            #expect(list.token == value.hex("token"))
            #expect(list.condition == value.text("condition") && list.order == value.int("order"))
        }
        try each(Page.self) { page, value in
            #expect(page.isEnd == (value.int("is_end") == 1) && page.token == value.hex("token"))
            #expect(page.records.count == value.objects("records").count)
        }
        try each(Count.self) { count, value in
            #expect(count.kind == value.int("kind") && count.group == value.int("group"))
            #expect(count.condition == value.text("condition"))
        }
        try each(Counted.self) { counted, value in
            let rows = value.objects("counts")
            #expect(counted.counts == rows.map { KindCount(kind: $0.int("kind"), count: $0.int("records")) })
            #expect(
                counted.groups
                    == value.objects("groups").map { row in
                        GroupCount(row.int("present") == 1 ? row.hex("value") : nil, count: row.int("records"))
                    })
        }
        try each(Clear.self) { #expect($0.kind == $1.int("kind")) }
        try each(Cleared.self) { #expect($0.deleted == $1.int("deleted") && $0.seq == $1.u64("seq")) }
        try each(Compact.self) { compact, value in
            #expect(compact.historySince == Int64(value.int("history_since")))
            #expect(compact.deadPercent == value.int("dead_share"))
            #expect(compact.includesLast == (value.int("flags") & 1 == 1))
            #expect(Int(compact.compression.rawValue) == value.int("flags") & 6)
            #expect(compact.waitMilliseconds == value.int("wait") && compact.bytesPerSecond == value.int("rate"))
            let rows = value.objects("purged")
            #expect(compact.purged == rows.map { Compact.PurgedKey(kind: $0.int("kind"), key: $0.hex("key")) })
        }
        try each(Compacted.self) { compacted, value in
            #expect(compacted.byteCountBefore == value.int("bytes_before"))
            #expect(compacted.byteCountAfter == value.int("bytes_after"))
            #expect(
                compacted.segmentCount == value.int("segments") && compacted.rewrittenCount == value.int("rewritten"))
            #expect(compacted.droppedCount == value.int("dropped"))
            #expect(compacted.removedAsideCount == value.int("aside_removed"))
            #expect(compacted.endedSubscriptionCount == value.int("subscriptions_ended"))
            #expect(compacted.floor == value.u64("floor"))
            #expect(compacted.historySince == Int64(value.int("history_since")))
        }
        try each(KindList.self) { list, value in
            let kinds = try value.objects("kinds").map { form in
                try Kind(file: Array(JSONSerialization.data(withJSONObject: form)))
            }
            #expect(list.kinds == kinds)
        }
        try each(Origins.self) { #expect($0.after == $1.u64("after") && $0.limit == $1.int("limit")) }
        try each(OriginList.self) { list, value in
            let rows = value.objects("origins")
            #expect(list.origins.map(\.number) == rows.map { $0.u64("number") })
            #expect(list.origins.map(\.name) == rows.map { $0.text("name") })
            #expect(list.origins.map(\.token) == rows.map { $0.text("token") })
            #expect(list.origins.map(\.time) == rows.map { Int64($0.int("time")) })
        }
    }

    @Test("subscriptions and their events")
    func subscriptions() throws {
        try each(Subscribe.self) { subscribe, value in
            #expect(subscribe.kinds == value["kinds"] as? [Int] && subscribe.condition == value.text("condition"))
            #expect(subscribe.exceptOrigin == value.u64("except"))
            #expect(subscribe.wantsLastRecord == (value.int("flags") == 1))
        }
        try SharedFiles.eachMessage(.events) { body, value in
            try body.withUnsafeBytes { body in
                var runs = try RunReader(body: body)
                #expect(runs.header.after == value.u64("after") && runs.header.through == value.u64("through"))
                for row in value.objects("runs") {
                    let run = try #require(try runs.next())
                    #expect(run.header.firstSeq == row.u64("first_seq") && run.header.time == Int64(row.int("time")))
                    #expect(Array(run.entries) == row.hex("entries"))
                }
                #expect(try runs.next() == nil)
            }
        }
        try each(SnapshotEnd.self) { #expect($0.s1 == $1.u64("s1")) }
        try each(Credit.self) { #expect($0.byteCount == $1.u64("bytes")) }
        try each(Sync.self) { #expect(Int($0.subscription) == $1.int("subscription")) }
        try each(Synced.self) { #expect($0.through == $1.u64("through")) }
        try each(Unsubscribe.self) { #expect(Int($0.subscription) == $1.int("subscription")) }
        try each(Unsubscribed.self) { #expect($0.through == $1.u64("through")) }
    }

    @Test("pings, plugins and goodbyes")
    func rest() throws {
        try each(Ping.self) { #expect($0.bytes == $1.hex("bytes")) }
        try each(Pong.self) { #expect($0.bytes == $1.hex("bytes")) }
        try each(Plugin.self) { plugin, value in
            #expect(plugin.name == value.text("name") && Int(plugin.action.rawValue) == value.int("action"))
        }
        try each(PluginDone.self) { #expect($0.state == $1.text("state")) }
        try each(Goodbye.self) { #expect($0.rawNumber == $1.int("error") && $0.reason == $1.text("reason")) }
        try each(HostGoodbye.self) { goodbye, value in
            #expect(goodbye.goodbye.rawNumber == value.int("error") && goodbye.goodbye.reason == value.text("reason"))
        }
        try each(ErrorReply.self) { reply, value in
            #expect(Int(reply.flags.rawValue) == value.int("flags"))
            let facts = value.objects("facts")
            #expect(reply.facts.map(\.name) == facts.map { $0.text("name") })
            #expect(reply.facts.map(\.value) == facts.map { $0.text("value") })
        }
    }

    @Test("the library, its sessions and plugins")
    func status() throws {
        try each(StatusIs.self) { status, value in
            let rows = value.objects("counts")
            #expect(status.records == rows.map { KindCount(kind: $0.int("kind"), count: $0.int("records")) })
            #expect(Int(status.mode.rawValue) == value.int("mode") && status.pid == value.int("pid"))
            #expect(status.version == value.text("version") && status.epoch == value.u64("epoch"))
            #expect(status.reclaimableByteCount == value.int("reclaimable"))
            #expect(status.started == Int64(value.int("started")))
            #expect(status.sessions.count == value.objects("sessions").count)
            for (session, row) in zip(status.sessions, value.objects("sessions")) {
                #expect(session.id == row.int("id") && session.name == row.text("name"))
                #expect(session.version == row.text("version") && session.pid == row.int("pid"))
                #expect(Int(session.roles.rawValue) == row.int("roles"))
                #expect(Int(session.events.rawValue) == row.int("events"))
                #expect(session.subscriptions == row.int("subscriptions") && session.lag == row.u64("lag"))
            }
            #expect(status.plugins.count == value.objects("plugins").count)
            for (plugin, row) in zip(status.plugins, value.objects("plugins")) {
                #expect(plugin.name == row.text("name") && plugin.state == row.text("state"))
                #expect(plugin.pid == row.int("pid") && plugin.restarts == row.int("restarts"))
                #expect(plugin.lastError == row.text("last_error"))
            }
        }
    }
}
