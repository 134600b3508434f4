// The first 8 bytes of a connection, and whom one is speaking to when they are others.

import LarderFormat

/// The preface: `4C 41 52 44 45 52 01 0A`, "LARDER", major version 1, line feed.
public enum Preface {
    public static let bytes: [UInt8] = [0x4C, 0x41, 0x52, 0x44, 0x45, 0x52, 0x01, 0x0A]
    public static let byteCount = 8

    public enum Step: Equatable, Sendable {
        /// What is there agrees; more must come.
        case needMore
        /// The first 8 bytes are the preface.
        case isPreface
        case wrong(WrongClient)
    }

    /// Judges the first bytes of a connection, however few. Looks at 8 of them at most for the preface.
    public static func check(_ received: UnsafeRawBufferPointer) -> Step {
        for (index, byte) in received.prefix(byteCount).enumerated() where byte != bytes[index] {
            return .wrong(WrongClient(received))
        }
        return received.count < byteCount ? .needMore : .isPreface
    }
}

/// Who sends something else than the preface.
public enum WrongClient: Equatable, Sendable {
    /// Larder, of a major version that is not ours.
    case otherVersion(UInt8)
    case http
    case tls
    case text
    case unknown

    init(_ received: UnsafeRawBufferPointer) {
        let name = Preface.bytes.prefix(6)
        if received.count >= 7, received.prefix(6).elementsEqual(name) {
            self = .otherVersion(received[6])
        } else if received.first == 0x16, received.count < 2 || received[1] == 0x03 {
            self = .tls
        } else if WrongClient.httpMethods.contains(where: { zip(received, $0.utf8).allSatisfy { $0 == $1 } }) {
            self = .http
        } else if received.allSatisfy({ (0x20...0x7E).contains($0) || (0x09...0x0D).contains($0) || $0 >= 0x80 }) {
            self = .text
        } else {
            self = .unknown
        }
    }

    private static let httpMethods = [
        "GET ", "HEAD ", "POST ", "PUT ", "PATCH ", "DELETE ", "OPTIONS ", "CONNECT ", "TRACE ", "PRI * ",
    ]

    /// The line to answer before closing, its line feed included.
    public var line: String {
        let heard =
            switch self {
            case .otherVersion(let major): "you speak major version \(major) of its protocol and this host speaks 1"
            case .http: "this is no web server, it does not speak HTTP"
            case .tls: "it does not speak TLS"
            case .text: "it does not speak text"
            case .unknown: "what came is not the preface of its protocol"
            }
        return "larder: this is the socket of a Larder library; \(heard) (Protocol/SPEC.md, section 1)\n"
    }
}
