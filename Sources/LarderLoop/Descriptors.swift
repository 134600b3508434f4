import CLarder
import Glibc

/// Two connected Unix stream sockets in blocking mode, both close-on-exec; the caller owns them.
public func socketPair() throws(LoopError) -> (Int32, Int32) {
    var pair: (Int32, Int32) = (-1, -1)
    let code = withUnsafeMutableBytes(of: &pair) {
        larder_socket_pair($0.assumingMemoryBound(to: Int32.self).baseAddress!)
    }
    try LoopError.check(code, "socketpair")
    return pair
}

/// A pipe in blocking mode, both ends close-on-exec; the caller owns them.
func makePipe() throws(LoopError) -> (readEnd: Int32, writeEnd: Int32) {
    var pair: (Int32, Int32) = (-1, -1)
    let code = withUnsafeMutableBytes(of: &pair) { larder_pipe($0.assumingMemoryBound(to: Int32.self).baseAddress!) }
    try LoopError.check(code, "pipe2")
    return (pair.0, pair.1)
}

/// Closes a descriptor that the caller owns. Errors are of no use here: Linux frees the number in any case.
public func closeDescriptor(_ descriptor: Int32) { _ = Glibc.close(descriptor) }
