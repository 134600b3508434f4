// Unicode normalisation form C, where identity or equality asks for it. Stored text is never changed.

@_spi(_Unicode) import Swift

/// Whether UTF-8 text, known to be well-formed, is in normalisation form C.
public func isNFC(_ utf8: UnsafeRawBufferPointer) -> Bool {
    if utf8.allSatisfy({ $0 < 0x80 }) { return true }
    let text = String(decoding: utf8, as: UTF8.self)
    return text.unicodeScalars.elementsEqual(text._nfc)
}

/// Well-formed text in normalisation form C.
func normalised(_ utf8: UnsafeRawBufferPointer) -> String {
    var scalars = String.UnicodeScalarView()
    for scalar in String(decoding: utf8, as: UTF8.self)._nfc { scalars.append(scalar) }
    return String(scalars)
}

/// Whether two well-formed texts are equal once both are in normalisation form C.
public func areCanonicallyEqual(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Bool {
    // Swift's String equality is canonical equivalence.
    String(decoding: a, as: UTF8.self) == String(decoding: b, as: UTF8.self)
}

/// Whether well-formed text has no character but white space (FORMAT.md section 3).
public func isBlank(_ utf8: UnsafeRawBufferPointer) -> Bool {
    // Most text begins with a visible ASCII character.
    if let first = utf8.first, first > 0x20 && first < 0x7F { return false }
    return String(decoding: utf8, as: UTF8.self).unicodeScalars.allSatisfy { isWhiteSpace($0.value) }
}

private func isWhiteSpace(_ scalar: UInt32) -> Bool {
    switch scalar {
    case 0x09...0x0D, 0x20, 0x85, 0xA0, 0x1680, 0x2000...0x200A, 0x2028, 0x2029, 0x202F, 0x205F, 0x3000: true
    default: false
    }
}

/// The text in normalisation form C, as keys are stored.
public func composed(_ text: String) -> String {
    var text = text
    return text.withUTF8 { bytes in
        let bytes = UnsafeRawBufferPointer(bytes)
        return isNFC(bytes) ? String(decoding: bytes, as: UTF8.self) : normalised(bytes)
    }
}
