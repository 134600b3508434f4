// Imports: who brings records in, and how far it got.

import LarderFormat

extension StoreCore {
    mutating func beginImport(
        programName: String, source: String, token: String, now: Int64
    ) throws(StoreError) -> (origin: UInt64, lastBatch: UInt64, isResumed: Bool)? {
        if let failure { throw .readOnly(reason: failure) }
        if clear != nil { return nil }
        if !token.isEmpty, let known = origins.number(name: programName, token: token),
            origins.openImports.contains(known)
        {
            return (known, origins.lastBatch[known] ?? 0, true)
        }
        let room = source.utf8.count + token.utf8.count + programName.utf8.count + 2 * EntryWriter.headByteCountMax
        guard case .ready = try makeRoom(room, isRun: false, now: now) else { return nil }
        // An import without a token gets one, so that its origin is its own. A token that was used by an import that has
        // ended names the new one from here on.
        let unnamed = origins.number(name: programName, token: "\(nextSeq)") == nil ? "\(nextSeq)" : "\(nextSeq) \(now)"
        let number = try stageOrigin(name: programName, token: token.isEmpty ? unnamed : token)
        var writer = ByteWriter()
        writer.varint(number)
        writer.text(source)
        try stageOther(EntryType.importBegan, writer.bytes)
        origins.openImports.insert(number)
        return (number, 0, false)
    }

    mutating func endImport(origin: UInt64, outcome: UInt8, counts: [UInt64], now: Int64) throws(StoreError) -> UInt64?
    {
        if let failure { throw .readOnly(reason: failure) }
        if clear != nil { return nil }
        var writer = ByteWriter()
        writer.varint(origin)
        writer.u8(outcome)
        for count in counts { writer.varint(count) }
        let room = writer.count + EntryWriter.headByteCountMax
        guard case .ready = try makeRoom(room, isRun: false, mayUseReserve: true, now: now) else { return nil }
        try stageOther(EntryType.importEnded, writer.bytes)
        origins.openImports.remove(origin)
        return nextSeq - 1
    }
}
