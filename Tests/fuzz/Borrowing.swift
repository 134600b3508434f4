// The host's helper of this name, for its page tokens, which are built into this program.

extension [UInt8] {
    /// Lends the bytes; what is thrown keeps its type.
    func borrowed<R, E: Error>(_ body: (UnsafeRawBufferPointer) throws(E) -> R) throws(E) -> R {
        let result: Result<R, E> = withUnsafeBytes { bytes in
            do throws(E) { return .success(try body(bytes)) } catch { return .failure(error) }
        }
        return try result.get()
    }
}
