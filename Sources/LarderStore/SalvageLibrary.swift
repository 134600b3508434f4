// Salvage: what can be read of a damaged library, into a new one.

import LarderFormat

/// What `salvage` came to.
public struct SalvageReport: Sendable {
    /// What was lost, and what else is wrong, in the order of the log.
    public internal(set) var damages: [LogDamage] = []
    public internal(set) var tail: LogTail?
    public internal(set) var entryCount = 0
    public internal(set) var byteCount = 0
    /// Why the library has a new id, or "".
    public internal(set) var identityLoss = ""
    public internal(set) var epoch: UInt64 = 0

    public var lostSomething: Bool { !damages.isEmpty || !identityLoss.isEmpty }
}

/// Epochs that blocks of a log name, with the bytes of blocks that do.
public struct EpochCount: Equatable, Sendable {
    public var epoch: UInt64
    public var byteCount: Int
}

extension LogSource {
    /// A library's log, also where its file `larder` is lost or broken: then the blocks say the epoch.
    ///
    /// - Parameter epoch: whose blocks are meant where they don't agree; nil: they must.
    /// - Throws: `notALibrary` where no block checks or they name several epochs; `noLibrary`, `newerFormat`, `system`.
    /// - Returns: the log, and what is wrong with the identity or "".
    public static func damaged(
        library path: String, epoch: UInt64? = nil, files storeFiles: any StoreFiles = SystemFiles()
    ) throws(StoreError) -> (source: LogSource, identityLoss: String) {
        let fault: StoreError
        do throws(StoreError) { return (try LogSource(library: path, files: storeFiles), "") } catch { fault = error }
        switch fault {
        case .notALibrary, .damaged: break
        default: throw fault
        }
        let files = try list(path + "/log", storeFiles)
        let found = try epochs(files, storeFiles)
        let chosen = epoch.map { wanted in found.filter { $0.epoch == wanted } } ?? found
        guard let first = chosen.first else {
            throw .notALibrary(path: path, reason: "its identity is lost and no block of its log checks")
        }
        guard chosen.count == 1 else {
            let names = chosen.map { "\(hexadecimal($0.epoch)) (\($0.byteCount) bytes)" }.joined(separator: ", ")
            throw .notALibrary(path: path, reason: "its identity is lost and its blocks name several epochs: \(names)")
        }
        return (
            LogSource(storeFiles, path: path, identity: nil, epoch: first.epoch, files: files), "\(fault)"
        )
    }

    /// The epochs of all blocks that lie where they say, most bytes first.
    static func epochs(_ files: [File], _ storeFiles: any StoreFiles) throws(StoreError) -> [EpochCount] {
        var counts: [UInt64: Int] = [:]
        for file in files {
            let scanner = try SegmentScanner(
                files: storeFiles, path: file.path, number: file.number, byteCountMax: file.byteCount)
            defer { scanner.close() }
            var offset = 0
            while offset < scanner.size {
                let bytes = try scanner.bytes(offset, BlockHeader.byteCountMax)
                let place = LogPosition(segment: file.number, offset: UInt32(clamping: offset))
                guard let own = HeaderFacts(bytes)?.whole, own.position == place, own.epoch != 0 else {
                    offset += BlockHeader.alignment
                    continue
                }
                counts[own.epoch, default: 0] += Int(own.blockByteCount)
                offset += Int(own.blockByteCount)
            }
        }
        return counts.map { EpochCount(epoch: $0.key, byteCount: $0.value) }.sorted {
            ($1.byteCount, $0.epoch) < ($0.byteCount, $1.epoch)
        }
    }

    /// Writes everything that can be read into a new library at `target`: with seqs, first seqs, times, origins and
    /// kinds, under a new epoch. The source is not changed.
    ///
    /// - Parameters:
    ///   - identityLoss: what `damaged` said.
    ///   - now: milliseconds since 1970, for an identity that has to be made.
    /// - Throws: `notFree`, `locked`, `newerFormat`, `system`; then nothing is left at `target` that is a library.
    public func salvage(
        to target: String, identityLoss: String = "", now: Int64
    ) throws(StoreError) -> SalvageReport {
        var generator = SystemRandomNumberGenerator()
        let new = identity?.renewed(using: &generator) ?? Identity(now: now, using: &generator)
        let library = try NewLibrary(storeFiles, path: target)
        defer { library.close() }
        var relay = LogRelay(storeFiles, directory: library.logPath, epoch: new.epoch, places: .dense)
        do throws(StoreError) {
            var walk = try LogWalk(self, reach: .everything)
            try walk.run(&relay)
            let damages = try explained(relay.damages).sorted { ($0.segment, $0.offset) < ($1.segment, $1.offset) }
            let lost = damages.filter { $0.cause != .outOfOrder && $0.through > $0.after }
            try relay.finish(lost: lost.map { ($0.after + 1)...$0.through })
            try library.complete(new)
            var report = SalvageReport()
            report.damages = damages
            report.tail = walk.tail
            report.entryCount = relay.entryCount
            report.byteCount = relay.byteCount
            report.identityLoss = identityLoss
            report.epoch = new.epoch
            return report
        } catch {
            relay.abandon()
            throw error
        }
    }

    /// Without the segments that compaction took away, which are no loss.
    private func explained(_ damages: [LogDamage]) throws(StoreError) -> [LogDamage] {
        guard damages.contains(where: { $0.cause == .missingSegment }) else { return damages }
        let found = try verify().damages
        return damages.filter { damage in damage.cause != .missingSegment || found.contains(damage) }
    }
}
