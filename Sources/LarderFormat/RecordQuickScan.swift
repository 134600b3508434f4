// The common case of checking a record: few fields, short varints, no surprises. Whatever is out of the ordinary, good
// or bad, is left to the full check, so nothing is decided here but "this is in order".

import CLarder

extension RecordSchema {
    /// What `scan` says of a record that is in order and ordinary; nil for every other.
    @inline(__always)
    func quickScan(_ record: UnsafeRawBufferPointer, exempt: FieldSet) -> Scan? {
        let end = record.count
        guard end >= 9, end <= recordByteCountMax, let base = record.baseAddress else { return nil }
        let bitmapByteCount = Int(base.load(as: UInt8.self))
        guard bitmapByteCount >= 1, bitmapByteCount <= 8 else { return nil }
        let loaded = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
        var word = loaded & (UInt64.max &>> UInt64(64 &- 8 &* bitmapByteCount))
        guard word &>> UInt64(8 &* bitmapByteCount &- 8) != 0, word & ~declared.words.0 == 0 else { return nil }
        let missing = required.subtracting(exempt)
        guard missing.words.0 & ~word == 0, missing.words.1 | missing.words.2 | missing.words.3 == 0 else { return nil }

        var present = FieldSet()
        present.words.0 = word
        var at = 1 &+ bitmapByteCount
        let keyOffset = at
        var keyEnd = at
        while word != 0 {
            let field = word.trailingZeroBitCount &+ 1
            word &= word &- 1
            guard let next = quickValue(base, at, end, field) else { return nil }
            at = next
            if field <= kindKeyFieldCount { keyEnd = at }
        }
        guard at == end else { return nil }
        return Scan(present: present, keyOffset: keyOffset, keyByteCount: keyEnd &- keyOffset)
    }

    /// Behind the value at `at`, or nil.
    @inline(__always)
    private func quickValue(_ base: UnsafeRawPointer, _ start: Int, _ end: Int, _ field: Int) -> Int? {
        // Every type but uuid begins with a varint, and a bool is one.
        var at = start
        guard let value = quickVarint(base, &at, end) else { return nil }
        let rule = rule(field)
        switch UInt8(truncatingIfNeeded: rule) {
        case FieldType.text.rawValue:
            return quickText(base, at, end, value, rule)
        case FieldType.int.rawValue:
            return value == 0 && isNotZero(rule) ? nil : at
        case FieldType.identifier.rawValue:
            return value & 1 == 1 || value == 0 && isNotZero(rule) ? nil : at
        case FieldType.choice.rawValue:
            return value < 64 && choiceMask(field) & (1 &<< value) != 0 ? at : nil
        case FieldType.number.rawValue:
            guard let exponent = quickVarint(base, &at, end), exponent <= 800 else { return nil }
            let mantissa = Int64(bitPattern: value &>> 1) ^ -Int64(bitPattern: value & 1)
            return mantissa == 0 ? (exponent == 0 ? at : nil) : (mantissa % 10 != 0 ? at : nil)
        case FieldType.date.rawValue:
            return value & 1 == 0 && isOrdinaryDate(value &>> 1) ? at : nil
        case FieldType.bool.rawValue:
            return value <= 1 && at == start &+ 1 ? at : nil
        case FieldType.list.rawValue:
            guard value <= 64 else { return nil }
            for _ in 0..<value {
                guard let count = quickVarint(base, &at, end), let next = quickText(base, at, end, count, 0) else {
                    return nil
                }
                at = next
            }
            return at
        default:
            return nil
        }
    }

    /// A varint of one to five bytes in its shortest form.
    @inline(__always)
    private func quickVarint(_ base: UnsafeRawPointer, _ at: inout Int, _ end: Int) -> UInt64? {
        guard at < end else { return nil }
        var byte = UInt64(base.load(fromByteOffset: at, as: UInt8.self))
        at &+= 1
        if byte < 0x80 { return byte }
        var value = byte & 0x7F
        var shift: UInt64 = 7
        while shift <= 28 {
            guard at < end else { return nil }
            byte = UInt64(base.load(fromByteOffset: at, as: UInt8.self))
            at &+= 1
            value |= (byte & 0x7F) &<< shift
            if byte < 0x80 { return byte == 0 ? nil : value }
            shift &+= 7
        }
        return nil
    }

    @inline(__always)
    private func quickText(
        _ base: UnsafeRawPointer, _ at: Int, _ end: Int, _ byteCount: UInt64, _ rule: UInt16
    ) -> Int? {
        guard byteCount <= UInt64(end &- at) else { return nil }
        let count = Int(truncatingIfNeeded: byteCount)
        let text = base + at
        let isPlain = count <= 64 && isShortASCII(text, count)
        if !isPlain {
            // A key's normalisation form is for the full check.
            guard rule & 0x8000 == 0 else { return nil }
            if larder_utf8_valid(text.assumingMemoryBound(to: UInt8.self), count, nil) == 0 { return nil }
        }
        if rule & UInt16(FieldConstraints.notBlank.rawValue) &<< 8 != 0 {
            guard count > 0 else { return nil }
            let first = text.load(as: UInt8.self)
            guard first > 0x20 && first < 0x7F else { return nil }
        }
        return at &+ count
    }

    @inline(__always)
    private func isNotZero(_ rule: UInt16) -> Bool { rule & UInt16(FieldConstraints.notZero.rawValue) &<< 8 != 0 }

    /// A packed date from the year 0 on, but for the 29th of February.
    @inline(__always)
    private func isOrdinaryDate(_ packed: UInt64) -> Bool {
        let day = packed & 31
        let rest = packed &>> 5
        let month = rest % 13
        guard rest < 10_000 &* 13 else { return false }
        if day <= 28 { return month != 0 || day == 0 }
        // Bit m: month m has a 31st; only February has no 30th.
        return day == 31 ? 0x15AA &>> month & 1 == 1 : month > 2 || month == 1
    }
}
