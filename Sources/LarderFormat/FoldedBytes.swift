// Folded text as bytes, for what is compared rarely.

/// Text in the form in which equality and order compare it (SPEC.md section 17).
public func foldedBytes(_ utf8: UnsafeRawBufferPointer) -> [UInt8] {
    var lowered = String(decoding: utf8, as: UTF8.self).lowercased()
    return lowered.withUTF8 { Array(normalised(UnsafeRawBufferPointer($0)).utf8) }
}
