// Checks the entries of a log: their order, their declarations, their records, and what they say of one another.

import LarderFormat

/// Gathers a `VerifyReport` from a walk.
struct LogVerifier: LogVisitor {
    private(set) var report = VerifyReport()
    private var schemas: [Int: RecordSchema] = [:]
    private var missingKinds: Set<Int> = []
    private var origins: Set<UInt64> = [0]
    private var missingOrigins: Set<UInt64> = []
    private var lastSeq: UInt64 = 0
    private var claims = ClaimChecker()

    mutating func begin(segment: UInt32, byteCount: Int) {
        report.segments.append(VerifyReport.SegmentLine(number: segment, byteCount: byteCount))
        report.byteCount += byteCount
    }

    mutating func found(_ damage: LogDamage) {
        report.add(damage)
        if damage.through > damage.after { claims.holes.append((damage.after + 1)...damage.through) }
    }

    mutating func visit(_ contents: BlockContents) throws(StoreError) {
        report.blockCount += 1
        if contents.isCompressed { report.compressedBlockCount += 1 }
        let header = contents.header
        guard let at = report.segments.indices.last else { return }
        report.segments[at].blockCount += 1
        if report.segments[at].blockCount == 1 { report.segments[at].firstTime = header.commits.first?.time ?? 0 }
        report.segments[at].lastTime = header.commits.last?.time ?? 0
        try contents.entries { entry, _, offset throws(StoreError) in
            report.entryCount += 1
            report.segments[at].entryCount += 1
            if report.segments[at].firstSeq == 0 { report.segments[at].firstSeq = entry.seq }
            check(entry, header.position.segment, contents.fileOffset(offset))
        }
        report.segments[at].lastSeq = lastSeq
    }

    private mutating func check(_ entry: EntryView, _ segment: UInt32, _ offset: Int) {
        func damage(_ cause: LogDamage.Cause, _ reason: String) -> LogDamage {
            LogDamage(
                cause: cause, segment: segment, offset: offset, byteCount: entry.byteCount,
                reason: "seq \(entry.seq): \(reason)")
        }
        if entry.seq <= lastSeq {
            report.add(damage(.outOfOrder, "seq \(lastSeq) came before it"))
        } else {
            let unused = entry.seq - lastSeq - 1
            let (sum, overflow) = report.unusedSeqCount.addingReportingOverflow(unused)
            report.unusedSeqCount = overflow ? .max : sum
            lastSeq = entry.seq
        }
        switch entry.type {
        case EntryType.created, EntryType.updated, EntryType.deleted:
            guard let schema = schemas[entry.kind] else {
                if missingKinds.insert(entry.kind).inserted {
                    report.add(damage(.undeclaredKind, "kind \(entry.kind) was not declared before it"))
                }
                return
            }
            if !origins.contains(entry.origin), missingOrigins.insert(entry.origin).inserted {
                let found = damage(.undeclaredOrigin, "origin \(entry.origin) was not declared before it")
                claims.suspect(found, 1...entry.seq)
            }
            checkRecord(entry, schema, damage)
        default:
            do throws(FormatError) { try checkOther(entry) } catch {
                report.add(damage(.unparsable, "its body does not parse: \(error)"))
            }
        }
    }

    private mutating func checkRecord(
        _ entry: EntryView, _ schema: RecordSchema, _ damage: (LogDamage.Cause, String) -> LogDamage
    ) {
        let keyRange: Range<Int>
        do throws(FormatError) {
            if entry.type == EntryType.deleted {
                try schema.checkKey(entry.payload)
                keyRange = 0..<entry.payload.count
            } else {
                // A field that became required later is not missing in a record of before.
                let laterFields = schema.required.subtracting(FieldSet(1...schema.kind.keyFieldCount))
                let scan = try schema.scan(entry.payload, exempt: laterFields)
                keyRange = scan.keyOffset..<scan.keyOffset + scan.keyByteCount
            }
        } catch {
            let cause = error.code == .unknownField ? LogDamage.Cause.undeclaredField : .badRecord
            report.add(damage(cause, "\(schema.kind.name): \(error)"))
            return
        }
        let key = UnsafeRawBufferPointer(rebasing: entry.payload[keyRange])
        if let claim = claims.check(entry, key) {
            claims.suspect(damage(.contradiction, claim.reason), claim.from...entry.seq)
        }
    }

    private mutating func checkOther(_ entry: EntryView) throws(FormatError) {
        var reader = ByteReader(entry.payload)
        switch entry.type {
        case EntryType.kind:
            let kind = try Kind(from: &reader)
            try reader.expectEnd()
            if kind.version > schemas[kind.number]?.kind.version ?? 0 { schemas[kind.number] = RecordSchema(kind) }
        case EntryType.origin:
            origins.insert(try Origin(body: entry.payload, time: 0).number)
        case EntryType.importBegan:
            _ = try reader.varint()
            _ = try reader.text()
            try reader.expectEnd()
        case EntryType.importEnded, EntryType.token:
            _ = try reader.varint()
            if entry.type == EntryType.token { _ = try reader.varint() } else { _ = try reader.u8() }
            for _ in 0..<8 { _ = try reader.varint() }
            try reader.expectEnd()
        case EntryType.recovered:
            let (from, through) = (try reader.varint(), try reader.varint())
            try reader.expectEnd()
            if from <= through { claims.holes.append(from...through) }
        case EntryType.floor:
            claims.floor = max(claims.floor, try reader.varint())
            try reader.expectEnd()
        default:
            report.unknownTypeCount += 1
        }
    }

    /// The report, once the walk has ended.
    mutating func finish(_ walk: LogWalk) -> VerifyReport {
        report.unusedSeqCount -= min(report.unusedSeqCount, report.lostSeqCount)
        for damage in claims.judged() { report.add(damage) }
        report.damages.sort { ($0.segment, $0.offset) < ($1.segment, $1.offset) }
        report.recordCount = claims.liveCount
        report.kindCount = schemas.count
        report.originCount = origins.count - 1
        report.lastSeq = max(lastSeq, walk.lastSeq)
        report.tail = walk.tail
        report.end = walk.end
        report.synced = walk.map.synced
        return report
    }
}
