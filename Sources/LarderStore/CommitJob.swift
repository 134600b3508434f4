// Making a commit durable: the one piece of the write path that leaves the loop thread.

import LarderFormat

/// Writes and syncs one commit. Immutable; run it once, on any thread, then give the result to `Store.finish`.
public struct CommitJob: @unchecked Sendable {
    struct Write {
        let slab: Slab
        let slabOffset: Int
        let file: FileHandle
        let offset: Int
        let byteCount: Int
    }

    /// The commit's number.
    public let number: UInt64
    /// Bytes that will be written.
    public let byteCount: Int
    let files: any StoreFiles
    let writes: [Write]
    /// Directory in which a file was made that must outlive a power cut, or nil.
    let directory: String?
    let skipsSyncs: Bool
    /// Files that are written no more, and where they end.
    let sealed: [(file: FileHandle, end: Int)]
    /// Of segments that earlier commits filled.
    let sidecars: [Sidecar]

    /// Writes, then syncs every file that was written. Blocks. A failure is final: nothing is tried again.
    public func run() -> SystemError? {
        do throws(SystemError) {
            var synced: [FileHandle] = []
            for write in writes {
                let bytes = UnsafeRawBufferPointer(start: write.slab.base + write.slabOffset, count: write.byteCount)
                try files.write(write.file, at: write.offset, bytes)
                if !synced.contains(write.file) { synced.append(write.file) }
            }
            // What is laid out behind their ends goes back; nothing depends on it.
            for file in sealed { try? files.truncate(file.file, to: file.end) }
            if !skipsSyncs {
                for file in synced { try files.sync(file) }
                if let directory { try files.syncDirectory(directory) }
            }
            for sidecar in sidecars { sidecar.write() }
            return nil
        } catch { return error }
    }
}

extension StoreCore {
    /// Closes what is staged and hands it out; nil when nothing is staged or a commit is under way.
    mutating func takeCommit() -> CommitJob? {
        guard inFlight == nil, failure == nil else { return nil }
        // A clear closes its own blocks: only it knows whether the run goes on.
        if open.isOpen && staged.isPartOfClear { return nil }
        if open.isOpen && open.entryCount == 0 { open = .none }
        closeBlock(continues: false)
        guard !staged.blocks.isEmpty else { return nil }
        var writes: [CommitJob.Write] = []
        for block in staged.blocks {
            let file = block.file
            // Blocks that are neighbours in the slab go out in one write.
            if let last = writes.last, last.slab === block.slab, last.file == file,
                last.slabOffset + last.byteCount == block.slabOffset
            {
                writes[writes.count - 1] = CommitJob.Write(
                    slab: last.slab, slabOffset: last.slabOffset, file: file, offset: last.offset,
                    byteCount: last.byteCount + block.byteCount)
                continue
            }
            writes.append(
                CommitJob.Write(
                    slab: block.slab, slabOffset: block.slabOffset, file: file,
                    offset: block.slab.fileOffset + block.slabOffset, byteCount: block.byteCount))
        }
        let job = CommitJob(
            number: staged.number, byteCount: writes.reduce(0) { $0 + $1.byteCount }, files: files, writes: writes,
            directory: hasNewFile && !options.skipsDirectorySyncs ? logPath : nil, skipsSyncs: options.skipsSyncs,
            sealed: staged.sealed, sidecars: sealed)
        staged.writesSidecars = !sealed.isEmpty
        sealed = []
        hasNewFile = false
        inFlight = staged
        swap(&inFlightOps, &stagedOps)
        stagedOps.removeAll()
        staged = Commit(number: nextCommitNumber, time: 0)
        nextCommitNumber += 1
        return job
    }

    /// Ends all writing: what is staged and not handed out has failed. A commit that is under way can still succeed.
    mutating func failWriting(_ error: StoreError) {
        failure = "\(error)"
        if case .system(let error) = error { failureCode = error.code }
        stagedOps.removeAll()
        open = .none
        clear = nil
    }

    /// Takes in what became of the commit that is under way: publishes it, or ends all writing.
    mutating func finish(_ failure: SystemError?) {
        guard let commit = inFlight else { return }
        inFlight = nil
        if isDistrusted, commit.writesSidecars { removeAllSidecars() }
        if let failure {
            inFlightOps.removeAll()
            failWriting(.system(failure))
            return
        }
        if let last = commit.blocks.last {
            durable = LogPosition(
                segment: last.segment, offset: UInt32(last.slab.fileOffset + last.slabOffset + last.byteCount))
        }
        // What is staged already may go into files that the log has moved on from.
        let stillWritten = staged.blocks.map(\.file) + staged.sealed.map(\.file)
        for handle in retiredHandles where !stillWritten.contains(handle) { files.close(handle) }
        retiredHandles.removeAll { !stillWritten.contains($0) }
        if commit.isPartOfClear {
            clear?.finished(commit.blocks)
            return
        }
        publishOps()
        publish(commit.blocks)
        gather(commit)
        inFlightOps.removeAll()
        for kind in commit.kinds { declare(kind) }
        for entry in commit.others where entry.type == EntryType.floor { raiseFloor(entry) }
        for token in commit.tokens {
            origins.lastBatch[token.origin] = max(origins.lastBatch[token.origin] ?? 0, token.batch)
        }
    }

    /// Lets readers see blocks that are durable.
    mutating func publish(_ blocks: [ClosedBlock]) {
        for block in blocks {
            guard let segment = segment(block.segment) else { continue }
            segment.commits.append(block.place)
            segment.lastBlockOffset = block.slab.fileOffset + block.slabOffset
            segment.byteCount = block.slab.fileOffset + block.slabOffset + block.byteCount
            publishedSeq = block.place.lastSeq
        }
        generation &+= 1
        closeHolesIfWorthIt()
    }

    private mutating func publishOps() {
        let count = inFlightOps.count
        let ahead = 24
        for at in 0..<min(ahead, count) { index.prefetch(inFlightOps[at].fingerprint) }
        for at in 0..<count {
            if at &+ ahead < count { index.prefetch(inFlightOps[at &+ ahead].fingerprint) }
            let op = inFlightOps[at]
            if compaction != nil { protect(op.previousSeq) }
            if op.isDelete {
                applyDeleted(firstSeq: op.firstSeq, fingerprint: op.fingerprint)
                continue
            }
            if op.firstSeq == op.seq {
                applyCreated(op.place, firstSeq: op.firstSeq, fingerprint: op.fingerprint)
            } else {
                applyUpdated(op.place, firstSeq: op.firstSeq, fingerprint: op.fingerprint)
            }
        }
        var lastNumber = UInt32.max
        var lastSegment: Segment?
        for at in 0..<count where !inFlightOps[at].isDelete {
            let number = inFlightOps[at].place.segment
            if number != lastNumber {
                lastSegment = segment(number)
                lastNumber = number
            }
            lastSegment?.saveCount &+= 1
            lastSegment?.liveCount &+= 1
        }
        adoptOrphans()
        if !valueIndexes.isEmpty {
            for at in 0..<count { publishValues(inFlightOps[at]) }
        }
    }
}
