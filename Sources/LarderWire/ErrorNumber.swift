// The registry of errors: SPEC.md section 6, also in Protocol/errors.json.

import LarderFormat

/// Number of an error. Numbers are never given to another meaning.
public enum ErrorNumber: UInt16, CaseIterable, Sendable {
    case badPreface = 1
    case versionUnsupported = 2
    case capabilityUnsupported = 3
    case badFrame = 4
    case frameTooLarge = 5
    case unknownMessage = 6
    case wrongState = 7
    case badMessage = 8
    case requestInUse = 9
    case tooManyRequests = 10
    case unknownKind = 11
    case badRecord = 12
    case recordTooLarge = 13
    case batchTooLarge = 14
    case missingField = 15
    case blankField = 16
    case zeroField = 17
    case unknownField = 18
    case unknownChoice = 19
    case badText = 20
    case notCanonical = 21
    case keyNotNormalised = 22
    case badKey = 23
    case alreadySaved = 24
    case notFound = 25
    case conflict = 26
    case unknownOrigin = 27
    case failedToSave = 28
    case failedToDelete = 29
    case storeFull = 30
    case cursorExpired = 31
    case unknownSubscription = 32
    case badToken = 33
    case badCondition = 34
    case busy = 35
    case unsupported = 36
    case notPermitted = 37
    case cancelled = 38
    case deadlineExceeded = 39
    case shuttingDown = 40
    case unknownPlugin = 41
    case badManifest = 42
    case kindConflict = 43
    case corrupt = 44
    case `internal` = 45
    case tooManyGroups = 46
}

extension ErrorNumber {
    /// Whether the same request may work later.
    public enum Retry: UInt8, Sendable {
        case no
        case yes
        /// Once the host has been started again.
        case afterRestart
    }

    public var retry: Retry {
        switch self {
        case .tooManyRequests, .storeFull, .busy, .cancelled, .deadlineExceeded, .shuttingDown, .internal: .yes
        case .failedToSave, .failedToDelete: .afterRestart
        default: .no
        }
    }

    /// The connection ends after it.
    public var isFatal: Bool { rawValue <= ErrorNumber.frameTooLarge.rawValue }

    /// As SPEC.md spells it.
    public var name: String {
        switch self {
        case .badPreface: "bad_preface"
        case .versionUnsupported: "version_unsupported"
        case .capabilityUnsupported: "capability_unsupported"
        case .badFrame: "bad_frame"
        case .frameTooLarge: "frame_too_large"
        case .unknownMessage: "unknown_message"
        case .wrongState: "wrong_state"
        case .badMessage: "bad_message"
        case .requestInUse: "request_in_use"
        case .tooManyRequests: "too_many_requests"
        case .unknownKind: "unknown_kind"
        case .badRecord: "bad_record"
        case .recordTooLarge: "record_too_large"
        case .batchTooLarge: "batch_too_large"
        case .missingField: "missing_field"
        case .blankField: "blank_field"
        case .zeroField: "zero_field"
        case .unknownField: "unknown_field"
        case .unknownChoice: "unknown_choice"
        case .badText: "bad_text"
        case .notCanonical: "not_canonical"
        case .keyNotNormalised: "key_not_normalised"
        case .badKey: "bad_key"
        case .alreadySaved: "already_saved"
        case .notFound: "not_found"
        case .conflict: "conflict"
        case .unknownOrigin: "unknown_origin"
        case .failedToSave: "failed_to_save"
        case .failedToDelete: "failed_to_delete"
        case .storeFull: "store_full"
        case .cursorExpired: "cursor_expired"
        case .unknownSubscription: "unknown_subscription"
        case .badToken: "bad_token"
        case .badCondition: "bad_condition"
        case .busy: "busy"
        case .unsupported: "unsupported"
        case .notPermitted: "not_permitted"
        case .cancelled: "cancelled"
        case .deadlineExceeded: "deadline_exceeded"
        case .shuttingDown: "shutting_down"
        case .unknownPlugin: "unknown_plugin"
        case .badManifest: "bad_manifest"
        case .kindConflict: "kind_conflict"
        case .corrupt: "corrupt"
        case .internal: "internal"
        case .tooManyGroups: "too_many_groups"
        }
    }

    /// What a record that does not validate is refused with.
    public init(forRecord code: FormatError.Code) {
        self =
            switch code {
            case .truncated, .trailing, .outOfRange, .badStructure, .badDeclaration, .badChecksum: .badRecord
            case .notCanonical: .notCanonical
            case .badText: .badText
            case .tooLarge: .recordTooLarge
            case .missingField: .missingField
            case .blankField: .blankField
            case .zeroField: .zeroField
            case .unknownField: .unknownField
            case .unknownChoice: .unknownChoice
            case .keyNotNormalised: .keyNotNormalised
            }
    }
}
