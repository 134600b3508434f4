// Finds the values of a checked record in one pass, without allocating or throwing: what conditions, search, order and
// groups stand on. A record that is not what its check promised gives false, never a trap or a read behind its end.

/// Reads values at offsets of a record. The record is borrowed from its owner, who keeps it alive and unchanged.
struct FieldBytes {
    let base: UnsafeRawPointer
    /// In bytes.
    let count: Int

    /// Nil where there is nothing to read.
    @inline(__always)
    init?(_ record: UnsafeRawBufferPointer) {
        guard let base = record.baseAddress, record.count > 0 else { return nil }
        self.base = base
        count = record.count
    }

    @inline(__always)
    func byte(_ offset: Int) -> UInt8 { base.load(fromByteOffset: offset, as: UInt8.self) }

    /// A varint at `offset`, which is moved behind it. False where it is cut or longer than 64 bits.
    @inline(__always)
    func varint(_ offset: inout Int, _ value: inout UInt64) -> Bool {
        guard offset < count else { return false }
        let first = byte(offset)
        if first < 0x80 {
            offset &+= 1
            value = UInt64(first)
            return true
        }
        if count &- offset >= 2 {
            let second = byte(offset &+ 1)
            if second < 0x80 {
                offset &+= 2
                value = UInt64(first & 0x7F) | UInt64(second) &<< 7
                return true
            }
        }
        return longVarint(&offset, &value)
    }

    @inline(never)
    private func longVarint(_ offset: inout Int, _ value: inout UInt64) -> Bool {
        var result: UInt64 = 0
        var shift: UInt64 = 0
        while offset < count && shift < 64 {
            let next = byte(offset)
            offset &+= 1
            result |= UInt64(next & 0x7F) &<< shift
            if next < 0x80 {
                value = result
                return true
            }
            shift &+= 7
        }
        return false
    }

    @inline(__always)
    func svarint(_ offset: inout Int, _ value: inout Int64) -> Bool {
        var zigzag: UInt64 = 0
        guard varint(&offset, &zigzag) else { return false }
        value = Int64(bitPattern: zigzag &>> 1) ^ -Int64(bitPattern: zigzag & 1)
        return true
    }

    /// Moves behind `byteCount` bytes, if they are there.
    @inline(__always)
    func pass(_ byteCount: UInt64, _ offset: inout Int) -> Bool {
        guard byteCount <= UInt64(truncatingIfNeeded: count &- offset) else { return false }
        offset &+= Int(truncatingIfNeeded: byteCount)
        return true
    }

    /// The bytes of a text, of bytes, or of one text of a list; `offset` moves behind them. Nil where they are cut.
    @inline(__always)
    func string(_ offset: inout Int) -> UnsafeRawBufferPointer? {
        var byteCount: UInt64 = 0
        guard varint(&offset, &byteCount) else { return nil }
        let start = offset
        guard pass(byteCount, &offset) else { return nil }
        return UnsafeRawBufferPointer(start: base + start, count: offset &- start)
    }

    /// Moves behind a value of a type, by its framing alone.
    @inline(__always)
    func skip(_ type: UInt8, _ offset: inout Int) -> Bool {
        var value: UInt64 = 0
        switch type {
        case FieldType.text.rawValue, FieldType.bytes.rawValue:
            return varint(&offset, &value) && pass(value, &offset)
        case FieldType.int.rawValue, FieldType.date.rawValue, FieldType.time.rawValue, FieldType.choice.rawValue:
            return varint(&offset, &value)
        case FieldType.number.rawValue:
            return varint(&offset, &value) && varint(&offset, &value)
        case FieldType.identifier.rawValue:
            guard varint(&offset, &value) else { return false }
            return value & 1 == 0 || pass(value &>> 1, &offset)
        case FieldType.bool.rawValue: return pass(1, &offset)
        case FieldType.uuid.rawValue: return pass(16, &offset)
        case FieldType.list.rawValue:
            var count: UInt64 = 0
            guard varint(&offset, &count), count <= UInt64(truncatingIfNeeded: self.count &- offset) else {
                return false
            }
            while count > 0 {
                guard varint(&offset, &value), pass(value, &offset) else { return false }
                count &-= 1
            }
            return true
        default: return false
        }
    }

    /// The record's bitmap; `offset` is where its first value begins. False where it is cut or too long.
    @inline(__always)
    func present(_ fields: inout FieldSet, _ offset: inout Int) -> Bool {
        let byteCount = Int(byte(0))
        guard byteCount <= 32, byteCount < count || byteCount == 0 else { return false }
        offset = byteCount &+ 1
        if byteCount <= 8 && count >= 9 {
            let word = UInt64(littleEndian: base.loadUnaligned(fromByteOffset: 1, as: UInt64.self))
            fields.words.0 = byteCount == 0 ? 0 : word & (UInt64.max &>> UInt64(64 &- 8 &* byteCount))
            return true
        }
        for index in 0..<byteCount {
            let bits = UInt64(byte(index &+ 1)) &<< UInt64((index & 7) &* 8)
            switch index >> 3 {
            case 0: fields.words.0 |= bits
            case 1: fields.words.1 |= bits
            case 2: fields.words.2 |= bits
            default: fields.words.3 |= bits
            }
        }
        return true
    }

    /// Where a field's value begins. Nil: absent, or the record is broken before it.
    func offset(of field: Int, _ schema: RecordSchema) -> Int? {
        var present = FieldSet()
        var at = 0
        guard self.present(&present, &at), present.contains(field) else { return nil }
        while let next = present.popFirst() {
            if next == field { return at }
            guard skip(UInt8(truncatingIfNeeded: schema.rule(next)), &at) else { return nil }
        }
        return nil
    }
}

/// Where the values of the record in hand begin. Memory that is used again from record to record; owned by one thread.
struct FieldOffsets: ~Copyable {
    /// By field number 1 … 256; what stands at an absent field is of an earlier record.
    private let offsets: UnsafeMutablePointer<Int32>
    private(set) var present = FieldSet()

    init() {
        offsets = .allocate(capacity: 257)
        offsets.initialize(repeating: 0, count: 257)
    }

    deinit { offsets.deallocate() }

    /// Finds the values of all fields up to `highest`. False: the record is broken.
    @inline(__always)
    mutating func locate(_ record: FieldBytes, upTo highest: Int, _ rules: UnsafePointer<UInt16>) -> Bool {
        var at = 0
        present = FieldSet()
        // Offsets have 32 bits.
        guard record.count <= recordByteCountMax, record.present(&present, &at) else { return false }
        var rest = present
        while let field = rest.popFirst() {
            if field > highest { return true }
            offsets[field] = Int32(truncatingIfNeeded: at)
            guard record.skip(UInt8(truncatingIfNeeded: rules[field]), &at) else { return false }
        }
        return true
    }

    /// Where the value of a present field that was looked for begins.
    @inline(__always)
    func offset(_ field: Int) -> Int { Int(offsets[field]) }
}
