// 01 HELLO and 81 WELCOME: who is there, and what holds from now on.

import LarderFormat

/// The first message of a client.
public struct Hello: WireMessage {
    public static var type: MessageType { .hello }
    public static let nameByteCountRange = 1...64

    /// Minor versions that the client can speak.
    public var versionMin: Int
    public var versionMax: Int
    /// The program's; origins carry it.
    public var name: String
    public var version: String
    /// Capabilities without which the client cannot work.
    public var required: [String]
    /// Capabilities that it would use.
    public var optional: [String]
    /// After how many ms an unanswered request is answered `deadline_exceeded`; 0: none.
    public var deadlineMilliseconds: Int
    /// `LARDER_TOKEN`'s bytes, or empty.
    public var token: [UInt8]

    public init(
        name: String, version: String, versionMin: Int = ProtocolVersion.current,
        versionMax: Int = ProtocolVersion.current,
        required: [String] = [], optional: [String] = [], deadlineMilliseconds: Int = 0, token: [UInt8] = []
    ) {
        self.versionMin = versionMin
        self.versionMax = versionMax
        self.name = name
        self.version = version
        self.required = required
        self.optional = optional
        self.deadlineMilliseconds = deadlineMilliseconds
        self.token = token
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(versionMin)
        writer.varint(versionMax)
        writer.text(name)
        writer.text(version)
        writer.texts(required)
        writer.texts(optional)
        writer.varint(deadlineMilliseconds)
        writer.byteString(token)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        versionMin = try reader.number()
        versionMax = try reader.number()
        name = try reader.text(of: Hello.nameByteCountRange)
        version = try reader.text()
        required = try reader.texts()
        optional = try reader.texts()
        deadlineMilliseconds = try reader.number()
        token = try reader.byteArray()
        try reader.expectEnd()
    }
}

/// The minor version of this draft; the major one is in the preface.
public enum ProtocolVersion {
    public static let major = 1
    public static let current = 1
}

/// What a host promises and limits; all in bytes where it does not say otherwise.
public struct Limits: Equatable, Sendable {
    public var recordByteCountMax: Int
    /// Bytes of the operations of one WRITE.
    public var batchByteCountMax: Int
    /// Bytes of a frame's body.
    public var frameBodyByteCountMax: Int
    /// Requests of one connection that may wait for their answer.
    public var openRequestCountMax: Int
    /// The most credit that a subscription can have.
    public var creditByteCountMax: Int

    public init(
        recordByteCountMax: Int = 1_048_576, batchByteCountMax: Int = 4_194_304 - 64,
        frameBodyByteCountMax: Int = FrameHeader.bodyByteCountMax, openRequestCountMax: Int = 1_024,
        creditByteCountMax: Int = 67_108_864
    ) {
        self.recordByteCountMax = recordByteCountMax
        self.batchByteCountMax = batchByteCountMax
        self.frameBodyByteCountMax = frameBodyByteCountMax
        self.openRequestCountMax = openRequestCountMax
        self.creditByteCountMax = creditByteCountMax
    }
}

/// The host's answer to HELLO.
public struct Welcome: WireMessage {
    public static var type: MessageType { .welcome }

    public var version: Int
    public var hostName: String
    public var hostVersion: String
    /// Those of the client's that hold.
    public var capabilities: [String]
    public var epoch: UInt64
    public var lastSeq: UInt64
    public var floor: UInt64
    public var limits: Limits

    public init(
        version: Int = ProtocolVersion.current, hostName: String = "larder", hostVersion: String,
        capabilities: [String] = [], epoch: UInt64, lastSeq: UInt64, floor: UInt64, limits: Limits = Limits()
    ) {
        self.version = version
        self.hostName = hostName
        self.hostVersion = hostVersion
        self.capabilities = capabilities
        self.epoch = epoch
        self.lastSeq = lastSeq
        self.floor = floor
        self.limits = limits
    }

    public func encode(into writer: inout ByteWriter) {
        writer.varint(version)
        writer.text(hostName)
        writer.text(hostVersion)
        writer.texts(capabilities)
        writer.u64(epoch)
        writer.u64(lastSeq)
        writer.u64(floor)
        writer.varint(limits.recordByteCountMax)
        writer.varint(limits.batchByteCountMax)
        writer.varint(limits.frameBodyByteCountMax)
        writer.varint(limits.openRequestCountMax)
        writer.varint(limits.creditByteCountMax)
    }

    public init(from reader: inout ByteReader) throws(FormatError) {
        version = try reader.number()
        hostName = try reader.text()
        hostVersion = try reader.text()
        capabilities = try reader.texts()
        epoch = try reader.u64()
        lastSeq = try reader.u64()
        floor = try reader.u64()
        let record = try reader.number()
        let batch = try reader.number()
        let frame = try reader.number()
        let open = try reader.number()
        let credit = try reader.number()
        limits = Limits(
            recordByteCountMax: record, batchByteCountMax: batch, frameBodyByteCountMax: frame,
            openRequestCountMax: open, creditByteCountMax: credit)
        try reader.expectEnd()
    }
}
