// Taking staged entries back: for an atomic batch that must not be, and for a dry run that never was to be.

import LarderFormat

/// Where staging stood.
struct StagingMark {
    var open: OpenBlock
    var slabUsed: Int
    var blockCount: Int
    var operationCount: Int
    var nextSeq: UInt64
    var position: LogPosition
    var writeHandle: FileHandle?
    var retiredCount: Int
    var originCount: Int
    var tokenCount: Int
    var roomEnd: Int
    var sealedCount: Int
    var otherCount: Int
}

extension StoreCore {
    func mark() -> StagingMark {
        StagingMark(
            open: open, slabUsed: open.slab?.used ?? 0, blockCount: staged.blocks.count,
            operationCount: stagedOps.count, nextSeq: nextSeq, position: position, writeHandle: writeHandle,
            retiredCount: retiredHandles.count, originCount: origins.origins.count, tokenCount: staged.tokens.count,
            roomEnd: room.end, sealedCount: staged.sealed.count, otherCount: staged.others.count)
    }

    /// Undoes everything that was staged since the mark. Nothing of it was handed out, since a commit is only taken
    /// between batches.
    mutating func rollBack(to mark: StagingMark) {
        for block in staged.blocks[mark.blockCount...] where block.slab !== mark.open.slab { block.slab.forget() }
        if let slab = open.slab, slab !== mark.open.slab { slab.forget() }
        mark.open.slab?.used = mark.slabUsed
        staged.blocks.removeLast(staged.blocks.count - mark.blockCount)
        staged.tokens.removeLast(staged.tokens.count - mark.tokenCount)
        staged.others.removeLast(staged.others.count - mark.otherCount)
        open = mark.open.entryCount == 0 ? .none : mark.open
        stagedOps.truncate(to: mark.operationCount)
        // What was superseded by these changes is current again.
        inFlightOps.forgetValues()
        nextSeq = mark.nextSeq
        position = mark.position
        origins.truncate(to: mark.originCount)
        if writeHandle != mark.writeHandle {
            // Further segments were begun; their files stay, empty, until the log gets there again.
            if let handle = writeHandle { files.close(handle) }
            for handle in retiredHandles[mark.retiredCount...] where handle != mark.writeHandle { files.close(handle) }
            retiredHandles.removeLast(retiredHandles.count - mark.retiredCount)
            writeHandle = mark.writeHandle
            room.end = mark.roomEnd
            staged.sealed.removeLast(staged.sealed.count - mark.sealedCount)
        }
    }
}
