// Every file call of the store goes through this protocol: SystemFiles in life, SimulatedFiles in tests.

/// An open file.
public struct FileHandle: Hashable, Sendable {
    public let raw: Int32
    public init(raw: Int32) { self.raw = raw }
}

/// What a read that must not wait came to.
public enum QuickRead: Equatable, Sendable {
    /// This many bytes are there; fewer than asked for at the end of the file.
    case bytes(Int)
    /// They would have to come from the disk.
    case wouldBlock
}

/// The file calls of the store. Writes and syncs may come from another thread than reads, one at a time a file.
///
/// Offsets and counts are bytes. Every call either does all of what it says or throws.
public protocol StoreFiles: AnyObject, Sendable {
    /// Opens for reading through the page cache.
    func openForReading(_ path: String) throws(SystemError) -> FileHandle
    /// Opens or creates for aligned writing past the page cache where the file system allows that.
    func openForWriting(_ path: String) throws(SystemError) -> FileHandle
    func close(_ file: FileHandle)

    /// Reads up to `buffer.count` bytes; fewer only at the end of the file.
    func read(_ file: FileHandle, at offset: Int, into buffer: UnsafeMutableRawBufferPointer) throws(SystemError) -> Int
    /// Reads only what needs no disk.
    func readQuickly(_ file: FileHandle, at offset: Int, into buffer: UnsafeMutableRawBufferPointer)
        throws(SystemError) -> QuickRead
    /// Tells the system that a range will be read soon.
    func willRead(_ file: FileHandle, at offset: Int, count: Int)
    /// Writes all bytes. Address, count and offset are multiples of 4,096.
    func write(_ file: FileHandle, at offset: Int, _ bytes: UnsafeRawBufferPointer) throws(SystemError)
    /// Makes everything written to the file durable.
    func sync(_ file: FileHandle) throws(SystemError)
    func truncate(_ file: FileHandle, to size: Int) throws(SystemError)
    func size(_ file: FileHandle) throws(SystemError) -> Int
    /// Sees to it that writes to a range cannot fail for want of room. The file's size and content stay; what is laid
    /// out behind its end goes with a truncation, also one to the size that it has. After a failure part of the room may
    /// be there.
    /// - Throws: ENOSPC, EDQUOT; EOPNOTSUPP where the file system cannot.
    func layOut(_ file: FileHandle, from start: Int, to end: Int) throws(SystemError)

    /// Makes creations, renames and removals in a directory durable.
    func syncDirectory(_ path: String) throws(SystemError)
    /// Creates a directory of mode 0700, and those above it; being there already is no error.
    func makeDirectory(_ path: String) throws(SystemError)
    /// Names in a directory, without order. Nil when there is no such directory.
    func list(_ path: String) throws(SystemError) -> [String]?
    func rename(_ path: String, to newPath: String) throws(SystemError)
    func remove(_ path: String) throws(SystemError)
    /// Gives a file a second name, which must not be there yet. Fails with EXDEV, EPERM and others where the file system
    /// does not have that.
    func link(_ path: String, to newPath: String) throws(SystemError)
    /// Whether two names are of one file. False where one of them is not there.
    func isSameFile(_ path: String, _ other: String) throws(SystemError) -> Bool
    /// Whether somebody has the lock file's lock. Takes none, and makes no file.
    func isLocked(_ path: String) throws(SystemError) -> Bool
    /// Holds a directory as readers do, together, or as one who changes what they read: alone.
    /// - Returns: nil when the directory is held in a way that excludes this. Closing gives it back.
    func hold(_ directory: String, alone: Bool) throws(SystemError) -> FileHandle?
    /// A small file as a whole; nil when there is none.
    func readWhole(_ path: String) throws(SystemError) -> [UInt8]?
    /// Writes a small file beside itself, syncs, renames it over, and syncs the directory.
    func replaceWhole(_ path: String, with bytes: [UInt8]) throws(SystemError)
    /// Takes the lock file for as long as the handle is open, and writes this process's id into it.
    /// - Returns: nil when another process has it.
    func lock(_ path: String) throws(SystemError) -> FileHandle?
}
