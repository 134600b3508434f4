// What tests of a library that was not closed share.

import LarderFormat
import Testing

@testable import LarderStore

protocol CrashCase {}

extension CrashCase {
    func disk(_ driver: StoreDriver) throws -> SimulatedFiles {
        try #require(driver.files as? SimulatedFiles)
    }

    /// The same disk after a crash, with all that was written.
    func crashed(_ driver: StoreDriver) throws -> SimulatedFiles {
        var random = SplitMix64(seed: 1)
        return try disk(driver).powerCut(.keepsAll, using: &random)
    }

    func compare(_ driver: StoreDriver) throws {
        try driver.compareAll([])
        var reader = Subscriber(driver.store, after: 0)
        try reader.readToEnd(driver)
        try reader.compare(driver.model, isAtEnd: true)
    }

    /// Opens what lies on a disk and holds it against what another driver's model has.
    func open(_ files: SimulatedFiles, like driver: StoreDriver) throws -> StoreDriver {
        let opened = try StoreDriver(files, options: driver.options, model: driver.model, now: driver.now + 1000)
        try compare(opened)
        return opened
    }
}
