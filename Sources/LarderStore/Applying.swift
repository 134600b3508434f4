// What entries do to the index, in the order of the log: as they become visible, and when the log is read.

import LarderFormat

extension StoreCore {
    /// A record that was not there is now.
    @inline(__always)
    mutating func applyCreated(_ place: Place, firstSeq: UInt64, fingerprint: UInt32) {
        let ordinal = table.append(place, firstSeq: firstSeq)
        index.insert(fingerprint, ordinal: ordinal)
        liveCounts[Int(place.kindIndex)] &+= 1
    }

    /// A record's entry is superseded by another, or the record comes back.
    mutating func applyUpdated(_ place: Place, firstSeq: UInt64, fingerprint: UInt32) {
        guard let ordinal = table.ordinal(firstSeq: firstSeq) else {
            // Its hole was closed since it was deleted, or the entry that first saved it is lost.
            return updateOrphan(place, firstSeq: firstSeq, fingerprint: fingerprint)
        }
        let old = table[ordinal]
        if old.isHole {
            index.insert(fingerprint, ordinal: ordinal)
            liveCounts[Int(place.kindIndex)] &+= 1
        } else {
            segment(old.segment)?.liveCount &-= 1
        }
        table.set(ordinal, place)
    }

    mutating func applyDeleted(firstSeq: UInt64, fingerprint: UInt32) {
        guard let ordinal = table.ordinal(firstSeq: firstSeq) else { return deleteOrphan(firstSeq: firstSeq) }
        let old = table[ordinal]
        guard !old.isHole else { return }
        segment(old.segment)?.liveCount &-= 1
        liveCounts[Int(old.kindIndex)] &-= 1
        index.remove(fingerprint, ordinal: ordinal)
        table.set(ordinal, .hole)
    }

    mutating func closeHolesIfWorthIt() {
        guard table.isWorthRenumbering else { return }
        let map = table.renumber()
        renumberCount += 1
        index.renumber { map[Int($0)] }
        valueIndexes = [:]
        generation &+= 1
    }

    // MARK: Entries as they are read

    mutating func applyEntry(
        _ entry: EntryView, _ time: Int64, _ segment: Segment, _ offset: Int
    ) throws(StoreError) {
        report.entryCount += 1
        guard entry.type <= EntryType.deleted else {
            gathered.others.append(
                OtherEntry(seq: entry.seq, type: entry.type, time: time, body: Array(entry.payload)))
            return applyOther(entry, time)
        }
        origins.note(entry.origin)
        guard let kindIndex = indexOrShipped(entry.kind) else {
            report.undeclaredKinds[entry.kind, default: 0] += 1
            gathered.isIncomplete = true
            return
        }
        guard let key = entry.key(of: kinds[kindIndex]) else { return }
        let fingerprint = hasher.fingerprint(kind: entry.kind, key: key)
        if !report.lostSpans.isEmpty {
            // More may change than what this entry says.
            gathered.isIncomplete = true
            try endOthers(kindIndex, key, fingerprint, except: entry.firstSeq)
            refile(firstSeq: entry.firstSeq, kindIndex, fingerprint)
        }
        let change = IndexChange(
            entry, fingerprint, segment: segment.number, offset: offset, kindIndex: kindIndex)
        gathered.changes.append(change)
        apply(change, segment)
    }

    @inline(__always)
    mutating func apply(_ change: IndexChange, _ segment: Segment) {
        if change.place.isHole { return applyDeleted(firstSeq: change.firstSeq, fingerprint: change.fingerprint) }
        segment.saveCount &+= 1
        segment.liveCount &+= 1
        if change.isCreated {
            applyCreated(change.place, firstSeq: change.firstSeq, fingerprint: change.fingerprint)
        } else {
            applyUpdated(change.place, firstSeq: change.firstSeq, fingerprint: change.fingerprint)
        }
    }

    /// The index of a kind; where its declaration is lost and it comes with Larder, it is taken from there.
    private mutating func indexOrShipped(_ number: Int) -> UInt8? {
        if let index = kinds.index(number) { return index }
        guard let kind = options.kinds.first(where: { $0.number == number }) else { return nil }
        declare(kind)
        undeclared.insert(number)
        return kinds.index(number)
    }

    mutating func applyOther(_ entry: EntryView, _ time: Int64) {
        var reader = ByteReader(entry.payload)
        do throws(FormatError) {
            switch entry.type {
            case EntryType.kind:
                let kind = try Kind(from: &reader)
                declare(kind)
                undeclared.remove(kind.number)
            case EntryType.origin:
                origins.declare(try Origin(body: entry.payload, time: time))
            case EntryType.importBegan:
                origins.openImports.insert(try reader.varint())
            case EntryType.importEnded:
                origins.openImports.remove(try reader.varint())
            case EntryType.floor:
                floor = max(floor, try reader.varint())
            case EntryType.recovered:
                let from = try reader.varint()
                let through = try reader.varint()
                if from <= through { recoveredGaps.append(from...through) }
            case EntryType.token:
                let origin = try reader.varint()
                origins.lastBatch[origin] = max(origins.lastBatch[origin] ?? 0, try reader.varint())
            default:
                break
            }
        } catch {
            // The entry's CRC holds, so a newer writer made it: it is kept, and means nothing here.
        }
    }
}
