// A fault that a simulated disk is told to have.

import Glibc

/// A call that is to fail.
public struct SimulatedFault: Sendable {
    /// The C name of the call, as in `SystemError`; nil: any call that changes something, or any that reads.
    public var call: String?
    /// Only calls about paths that end so; nil: all.
    public var pathSuffix: String?
    /// Calls that still succeed before it.
    public var callsBefore: Int
    public var code: Int32
    /// Every later one fails too.
    public var isSticky: Bool
    /// A write puts its first half on the disk before it fails.
    public var isShort: Bool
    /// It is a call that changes nothing which fails: of reading, of looking, of waiting for others. None does otherwise.
    public var isOfReads: Bool

    public init(
        call: String?, pathSuffix: String? = nil, callsBefore: Int = 0, code: Int32 = EIO, isSticky: Bool = false,
        isShort: Bool = false, isOfReads: Bool = false
    ) {
        self.call = call
        self.pathSuffix = pathSuffix
        self.callsBefore = callsBefore
        self.code = code
        self.isSticky = isSticky
        self.isShort = isShort
        self.isOfReads = isOfReads
    }
}
