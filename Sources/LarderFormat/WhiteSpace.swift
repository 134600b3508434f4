// White space in UTF-8 bytes (FORMAT.md section 3), without making a string of them.

/// Bytes of the white space character that begins at `offset`, or 0 where none does.
@inline(__always)
func whiteSpaceByteCount(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> Int {
    guard offset < bytes.count else { return 0 }
    let byte = bytes[offset]
    if byte < 0x80 { return byte == 0x20 || byte &- 9 < 5 ? 1 : 0 }
    return wideWhiteSpaceByteCount(bytes, at: offset, byte)
}

private func wideWhiteSpaceByteCount(_ bytes: UnsafeRawBufferPointer, at offset: Int, _ lead: UInt8) -> Int {
    guard bytes.count &- offset >= 2 else { return 0 }
    let second = bytes[offset &+ 1]
    if lead == 0xC2 { return second == 0x85 || second == 0xA0 ? 2 : 0 }
    guard bytes.count &- offset >= 3 else { return 0 }
    let third = bytes[offset &+ 2]
    switch (lead, second) {
    case (0xE1, 0x9A): return third == 0x80 ? 3 : 0
    case (0xE2, 0x80): return third <= 0x8A || third == 0xA8 || third == 0xA9 || third == 0xAF ? 3 : 0
    case (0xE2, 0x81): return third == 0x9F ? 3 : 0
    case (0xE3, 0x80): return third == 0x80 ? 3 : 0
    default: return 0
    }
}

/// Whether the bytes are nothing but white space.
@inline(__always)
func isWhiteSpaceOnly(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var at = 0
    while at < bytes.count {
        let byteCount = whiteSpaceByteCount(bytes, at: at)
        if byteCount == 0 { return false }
        at &+= byteCount
    }
    return true
}

/// The words of a text: what white space parts.
func words(of bytes: UnsafeRawBufferPointer) -> [[UInt8]] {
    var words: [[UInt8]] = []
    var start = 0
    var at = 0
    while at < bytes.count {
        let byteCount = whiteSpaceByteCount(bytes, at: at)
        if byteCount > 0 {
            if at > start { words.append(Array(bytes[start..<at])) }
            start = at + byteCount
        }
        at += max(byteCount, 1)
    }
    if at > start { words.append(Array(bytes[start..<at])) }
    return words
}
