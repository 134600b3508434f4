import Glibc

/// A pipe from a child's output to this process. Loop thread only.
///
/// Ends when every process that has the other end has closed it, which may be long after the child has exited; its
/// owner closes it when it no longer cares.
public final class OutputPipe {
    /// The end that is read. Closing it closes the pipe.
    public let stream: Stream
    private let buffer: UnsafeMutableRawBufferPointer
    fileprivate var childEnd: ChildEnd

    public init(loop: Loop) throws(LoopError) {
        let ends = try makePipe()
        do throws(LoopError) {
            stream = try Stream(loop: loop, adopting: ends.readEnd)
        } catch {
            closeDescriptor(ends.readEnd)
            closeDescriptor(ends.writeEnd)
            throw error
        }
        childEnd = ChildEnd(descriptor: ends.writeEnd)
        buffer = .allocate(byteCount: 16_384, alignment: 16)
    }

    deinit {
        stream.close()
        buffer.deallocate()
    }

    /// Gives out what comes, at most 16 KiB at a time; the bytes are valid during the call only. `onEnd` runs once,
    /// with nil at the end of file or with the error, but not after `close`.
    public func startReading(
        onOutput: @escaping (UnsafeRawBufferPointer) -> Void, onEnd: @escaping (LoopError?) -> Void
    ) throws(LoopError) {
        // The closures retain the pipe until the stream has closed, so that the buffer outlives every read.
        try stream.startReading(allocate: { [self] _ in buffer }) { [self] event in
            switch event {
            case .bytes(let count): if count > 0 { onOutput(UnsafeRawBufferPointer(rebasing: buffer[..<count])) }
            case .end: onEnd(nil)
            case .failed(let error): onEnd(error)
            }
        }
    }

    public func close(onClosed: (() -> Void)? = nil) {
        childEnd.close()
        stream.close(onClosed: onClosed)
    }
}

/// A pipe from this process to a child's input. Loop thread only.
public final class InputPipe {
    /// The end that is written. Closing it is the child's end of file.
    public let stream: Stream
    fileprivate var childEnd: ChildEnd

    public init(loop: Loop) throws(LoopError) {
        let ends = try makePipe()
        do throws(LoopError) {
            stream = try Stream(loop: loop, adopting: ends.writeEnd)
        } catch {
            closeDescriptor(ends.readEnd)
            closeDescriptor(ends.writeEnd)
            throw error
        }
        childEnd = ChildEnd(descriptor: ends.readEnd)
    }

    deinit { stream.close() }

    public func close(onClosed: (() -> Void)? = nil) {
        childEnd.close()
        stream.close(onClosed: onClosed)
    }
}

/// The child's end of a pipe, ours only until the child has it: a copy kept here would hide the end of file.
struct ChildEnd: ~Copyable {
    private(set) var descriptor: Int32

    init(descriptor: Int32) { self.descriptor = descriptor }

    deinit { if descriptor >= 0 { closeDescriptor(descriptor) } }

    mutating func close() {
        if descriptor >= 0 { closeDescriptor(descriptor) }
        descriptor = -1
    }
}

extension ChildDescriptor {
    /// What the child inherits; nil for nothing, and -1 if the pipe was given to a child before.
    var inherited: Int32? {
        switch self {
        case .null: nil
        case .inherited(let descriptor): descriptor
        case .output(let pipe): pipe.childEnd.descriptor
        case .input(let pipe): pipe.childEnd.descriptor
        }
    }

    func closeChildEnd() {
        switch self {
        case .null, .inherited: break
        case .output(let pipe): pipe.childEnd.close()
        case .input(let pipe): pipe.childEnd.close()
        }
    }
}
