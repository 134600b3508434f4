// 09 KINDS and 89 KIND_LIST.

import LarderFormat

public struct Kinds: EmptyMessage {
    public static var type: MessageType { .kinds }
    public init() {}
}

public struct KindList: WireMessage {
    public static var type: MessageType { .kindList }

    public var kinds: [Kind]

    public init(_ kinds: [Kind]) { self.kinds = kinds }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(kinds.count)
        for kind in kinds { kind.encode(into: &writer) }
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        kinds = try reader.list(ofAtLeast: 12) { (reader: inout ByteReader) throws(FormatError) in
            try Kind(from: &reader)
        }
        try reader.expectEnd()
    }
}
