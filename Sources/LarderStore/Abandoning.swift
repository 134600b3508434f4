// A CLEAR that found no room: what was written of its run is taken out of the log again.

import LarderFormat

extension StoreCore {
    /// Takes back what is staged and written of a run that has no end yet, so that the log can go on at its beginning.
    ///
    /// Nothing of it was answered or shown. The blocks go, the last first, and durably, before anything takes their
    /// place: one that stayed behind new ones would vouch for them before they are durable.
    /// - Returns: false when that failed, and nothing may be written any more.
    mutating func abandonClear(_ run: ClearRun) -> Bool {
        guard inFlight == nil else { return false }
        open = .none
        for block in staged.blocks { block.slab.forget() }
        for slab in slabs.slabs where slab.segment > run.start.segment { slab.forget() }
        for slab in slabs.slabs where slab.segment == run.start.segment {
            if slab.fileOffset >= Int(run.start.offset) {
                slab.forget()
            } else {
                slab.used = min(slab.used, Int(run.start.offset) - slab.fileOffset)
            }
        }
        let number = staged.number
        staged = Commit(number: number, time: 0)
        do throws(SystemError) {
            if let writeHandle { files.close(writeHandle) }
            for handle in retiredHandles { files.close(handle) }
            (writeHandle, retiredHandles) = (nil, [])
            while let last = segments.last, last.number > run.start.segment {
                reader.forget(segment: last.number)
                try files.remove(last.path)
                try files.syncDirectory(logPath)
                segments.removeLast()
            }
            guard let segment = segments.last, segment.number == run.start.segment else { return false }
            let file = try files.openForWriting(segment.path)
            writeHandle = file
            if try files.size(file) > Int(run.start.offset) { try files.truncate(file, to: Int(run.start.offset)) }
            try files.sync(file)
            reader.forget(segment: segment.number)
        } catch { return false }
        origins.truncate(to: run.originCount)
        position = run.start
        durable = run.start
        hasNewFile = true
        clear = nil
        room.end = Int(run.start.offset)
        // The reserve that the run has used; refused saves tell whether it is there.
        try? layOutReserve()
        return true
    }
}
