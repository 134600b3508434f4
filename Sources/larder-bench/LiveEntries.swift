// What of a log its library needs: counted from the log itself, as it lies.

import LarderFormat
import LarderStore

/// The newest saves of the records that are not deleted.
struct LiveEntries: Equatable {
    var recordCount = 0
    /// Bytes of the entries that the library holds.
    var recordByteCount = 0

    /// Reads a library's log, which a host may have open.
    init(ofLibrary path: String) throws(BenchError) {
        // By first seq, which a record keeps.
        var newest: [UInt64: Int] = [:]
        do throws(StoreError) {
            let source = try LogSource(library: path)
            for number in source.segmentNumbers {
                try source.inspect(segment: number, withEntries: true) { stretch in
                    for entry in stretch.entries where entry.type <= EntryType.deleted {
                        if entry.type == EntryType.deleted {
                            newest[entry.firstSeq] = nil
                        } else {
                            newest[entry.firstSeq] = entry.byteCount
                        }
                    }
                    return true
                }
            }
        } catch { throw .child("\(error)") }
        recordCount = newest.count
        recordByteCount = newest.values.reduce(0, +)
    }
}
