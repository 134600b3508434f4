// Reads that wait for the disk, and fail there.

import Glibc
import LarderFormat
import Testing

@testable import LarderStore

@Suite struct ColdReadTests {
    private let path = "library/log/00000001.seg"

    /// A library whose every read waits for the disk.
    private func library() throws -> (files: SimulatedFiles, store: Store, key: [UInt8]) {
        let driver = try Books.library((1...90).map { ($0, "book \($0)") })
        try driver.reopen()
        guard let files = driver.files as? SimulatedFiles else { throw Mismatch("no simulated files") }
        files.setBlockingReads(percent: 100)
        return (files, driver.store, Books.key(7).bytes)
    }

    private func get(_ store: Store, _ key: [UInt8]) throws(StoreError) -> GetResult {
        try key.withUnsafeBufferPointer { key throws(StoreError) in
            try store.get(kind: 2, key: UnsafeRawBufferPointer(key))
        }
    }

    @Test("a read that fails is told once to who asks again, and then tried anew")
    func failed() throws {
        let (_, store, key) = try library()
        let error = SystemError("pread", path, code: EIO)
        for _ in 0..<2 {
            guard case .cold(let read) = try get(store, key) else { throw Mismatch("nothing waits for the disk") }
            store.supply(
                ColdResult(window: read.run().window, fileID: read.fileID, offset: read.offset, failure: error))
            #expect(throws: StoreError.system(error)) { try get(store, key) }
        }
        guard case .cold(let read) = try get(store, key) else { throw Mismatch("it is not tried anew") }
        store.supply(read.run())
        guard case .found = try get(store, key) else { throw Mismatch("the record is not found") }
    }

    @Test("a segment that ends before its entries is no read without end")
    func short() throws {
        let (files, store, key) = try library()
        files.setContent(path, Array(try #require(files.content(path)).prefix(512)))
        guard case .cold(let read) = try get(store, key) else { throw Mismatch("nothing waits for the disk") }
        store.supply(read.run())
        #expect(throws: StoreError.system(SystemError("pread", path, code: EIO))) { try get(store, key) }
    }
}
