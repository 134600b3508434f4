// Kinds of one's own: what may be declared, and what contradicts what is there.

import LarderFormat

/// What became of a declaration.
public enum Defined: Sendable {
    /// In the log with this commit; the kind as it is then.
    case staged(Kind, commit: UInt64)
    /// It was so already.
    case unchanged(Kind)
    /// It contradicts what is there; a sentence that says both sides.
    case conflict(String)
    /// There is no room, or another declaration is under way, until a commit has been finished.
    case full
}

extension StoreCore {
    /// The first number of fields that users add to shipped kinds.
    static let ownFieldNumberMin = 129
    static let ownKindNumberMin = 64

    mutating func define(_ wanted: KindDraft, now: Int64) throws(StoreError) -> Defined {
        if let failure { throw .readOnly(reason: failure) }
        guard clear == nil, inFlight?.kinds.isEmpty ?? true, staged.kinds.isEmpty else { return .full }
        let known = kinds.schemas.map(\.kind)
        let current = known.first { wanted.number == 0 ? $0.name == wanted.name : $0.number == wanted.number }
        if let other = known.first(where: { $0.name == wanted.name }), current == nil || other.number != current?.number
        {
            return .conflict("kind \(wanted.number) is to be named \(wanted.name), which is kind \(other.number)")
        }
        if wanted.version != 0, wanted.version != (current?.version ?? 0) + 1, wanted.version != current?.version {
            return .conflict("version \(wanted.version) is declared; the kind has version \(current?.version ?? 0)")
        }
        if current == nil && wanted.number != 0 && wanted.number < Self.ownKindNumberMin {
            return .conflict(
                "numbers below \(Self.ownKindNumberMin) are those of kinds that come with Larder; leave it 0")
        }
        let number = current?.number ?? (wanted.number != 0 ? wanted.number : nextKindNumber(known))
        let kind: Kind
        do throws(FormatError) {
            kind = try wanted.kind(number: number, version: (current?.version ?? 0) + 1)
        } catch { return .conflict("\(error)") }
        if let current {
            if let conflict = kind.conflict(
                with: current, ownFieldNumberMin: number < Self.ownKindNumberMin ? Self.ownFieldNumberMin : 1)
            {
                return .conflict(conflict)
            }
            if kind.fields == current.fields && kind.labelFields == current.labelFields { return .unchanged(current) }
        } else if known.count >= KindTable.countMax {
            return .conflict("a library has at most \(KindTable.countMax) kinds")
        }
        let body = kind.encoded
        guard case .ready = try makeRoom(body.count + EntryWriter.headByteCountMax, isRun: false, now: now) else {
            return .full
        }
        try stageOther(EntryType.kind, body)
        staged.kinds.append(kind)
        return .staged(kind, commit: staged.number)
    }

    /// The lowest that is free. Kinds never go, so none is used twice; nor is one whose declaration is lost.
    private func nextKindNumber(_ known: [Kind]) -> Int {
        let taken = Set(known.map(\.number)).union(report.undeclaredKinds.keys)
        var number = Self.ownKindNumberMin
        while taken.contains(number) { number += 1 }
        return number
    }
}
