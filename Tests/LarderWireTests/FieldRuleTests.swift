// Reserved bits, ranges and forms of single messages.

import LarderFormat
import LarderWire
import Testing

@Suite("rules of fields")
struct FieldRuleTests {
    private func fault<M: WireMessage>(_: M.Type, _ body: [UInt8]) -> FormatError? {
        do {
            _ = try body.withUnsafeBytes { try M(body: $0) }
            return nil
        } catch { return error as? FormatError }
    }

    @Test("a reserved bit is refused at its offset")
    func reservedBits() {
        #expect(fault(Register.self, [8, 0, 0, 0, 0]) == FormatError(.badStructure, at: 0))
        #expect(fault(Register.self, [1, 4, 0, 0, 0]) == FormatError(.badStructure, at: 1))
        #expect(fault(List.self, [1, 2, 1, 0, 0, 0, 0]) == FormatError(.badStructure, at: 1))
        #expect(fault(Subscribe.self, [2, 64, 0, 0, 0, 0, 0]) == FormatError(.badStructure, at: 1))
        #expect(fault(Subscribe.self, [2, 1, 0, 0, 2, 0, 0]) == FormatError(.badStructure, at: 4))
        #expect(fault(ErrorReply.self, [1, 4, 0, 0, 0, 0]) == FormatError(.badStructure, at: 1))
        #expect(fault(Page.self, [2, 0, 0]) == FormatError(.badStructure, at: 0))
        #expect(fault(Found.self, [2, 0]) == FormatError(.badStructure, at: 0))
        #expect(fault(Matches.self, [2, 0, 0]) == FormatError(.badStructure, at: 0))
        #expect(fault(Counted.self, [0, 1, 2, 0, 0]) == FormatError(.badStructure, at: 2))
        #expect(fault(Defined.self, [1, 1, 2]) == FormatError(.badStructure, at: 2))
    }

    @Test("a number that is none of the choices is refused at its offset")
    func choices() {
        #expect(fault(Plugin.self, [0, 5]) == FormatError(.outOfRange, at: 1))
        #expect(fault(Plugin.self, [0, 0]) == FormatError(.outOfRange, at: 1))
        #expect(fault(EndImport.self, [1, 4, 0, 0, 0, 0, 0, 0, 0, 0]) == FormatError(.outOfRange, at: 1))
        #expect(fault(Subscribe.self, [5, 1, 0, 0, 0, 0, 0]) == FormatError(.outOfRange, at: 0))
    }

    @Test("a limit outside its range is refused")
    func limits() {
        #expect(fault(List.self, [1, 0, 0, 0, 0, 0, 0]) == FormatError(.outOfRange, at: 2))
        #expect(fault(List.self, [1, 0, 0x91, 0x4E, 0, 0, 0, 0]) == FormatError(.outOfRange, at: 2))
        #expect(fault(List.self, [1, 0, 0x90, 0x4E, 0, 0, 0, 0]) == nil)
        #expect(fault(Origins.self, [0, 0]) == FormatError(.outOfRange, at: 1))
        #expect(fault(Find.self, [1, 2, 0, 0]) == FormatError(.outOfRange, at: 3))
        #expect(fault(Find.self, [1, 2, 0, 0xE9, 7]) == FormatError(.outOfRange, at: 3))
        #expect(fault(Search.self, [0, 1, 0x61, 0, 0]) == FormatError(.outOfRange, at: 3))
        #expect(fault(History.self, [1, 0, 0]) == FormatError(.outOfRange, at: 2))
        #expect(fault(Entries.self, [0]) == FormatError(.outOfRange, at: 0))
        #expect(fault(Entries.self, [0xE9, 7] + Array(repeating: 1, count: 1_001)) == FormatError(.outOfRange, at: 0))
        #expect(fault(Ping.self, [65] + Array(repeating: 0, count: 65)) == FormatError(.tooLarge, at: 0))
    }

    @Test("a name is 1 to 64 bytes, an import's token at most 64")
    func names() {
        #expect(fault(Hello.self, [1, 1, 0, 0, 0, 0, 0, 0]) == FormatError(.outOfRange, at: 2))
        let long = [UInt8](repeating: 0x61, count: 65)
        #expect(fault(Hello.self, [1, 1, 65] + long + [0, 0, 0, 0, 0]) == FormatError(.outOfRange, at: 2))
        #expect(fault(BeginImport.self, [0, 65] + long) == FormatError(.outOfRange, at: 1))
    }

    @Test("a query is 1 to 256 bytes and not blank")
    func queries() {
        #expect(fault(Search.self, [0, 0, 1, 0]) == FormatError(.outOfRange, at: 1))
        #expect(fault(Search.self, [0, 5, 0x20, 0xE3, 0x80, 0x80, 0x09, 1, 0]) == FormatError(.outOfRange, at: 1))
        let long = [UInt8](repeating: 0x61, count: 257)
        #expect(fault(Search.self, [0, 0x81, 2] + long + [1, 0]) == FormatError(.outOfRange, at: 1))
        #expect(fault(Search.self, [0, 0x80, 2] + long.dropLast() + [1, 0]) == nil)
    }

    @Test("a value that is absent has no bytes")
    func absentValues() {
        #expect(fault(Counted.self, [0, 1, 0, 1, 7, 1]) == FormatError(.badStructure, at: 3))
        #expect(fault(Counted.self, [0, 1, 1, 0, 1]) == nil)
    }

    @Test("a run of HISTORY_IS and ENTRIES_ARE is one entry")
    func singleEntries() {
        let head = [UInt8](repeating: 0, count: 16)
        #expect(fault(HistoryIs.self, head + [2, 0, 0, 0, 1, 9]) == nil)
        #expect(fault(HistoryIs.self, head + [4, 0, 0, 0, 1, 9, 1, 9]) == FormatError(.badStructure, at: 20))
        #expect(fault(EntriesAre.self, head + [2, 0, 0, 0, 5, 9]) == FormatError(.badStructure, at: 20))
        #expect(fault(EntriesAre.self, head + [0, 0, 0, 0]) == FormatError(.outOfRange, at: 16))
        #expect(fault(EntriesAre.self, head + [3, 0, 0, 0, 1, 9]) == FormatError(.truncated, at: 16))
    }

    @Test("a declaration of DEFINE may leave its number and version to the host, and nothing else")
    func drafts() throws {
        func body(number: UInt8, version: UInt8) -> [UInt8] {
            [number, 1, 0x61, version, 1, 1, 1, 1, 0x62, 9, 1, 0]
        }
        #expect(fault(Define.self, body(number: 0, version: 0)) == nil)
        #expect(fault(KindList.self, [1] + body(number: 0, version: 1)) == FormatError(.badDeclaration, at: 1))
        #expect(fault(KindList.self, [1] + body(number: 1, version: 0)) == FormatError(.badDeclaration, at: 4))
        let draft = try body(number: 0, version: 7).withUnsafeBytes { try Define(body: $0) }.declaration
        #expect(draft.number == 0 && draft.version == 7 && draft.name == "a")
        let kind = try draft.kind(number: 64, version: 7)
        #expect(kind.number == 64 && kind.version == 7 && kind.fields == draft.shape.fields)
        #expect(KindDraft(kind, number: 0) == draft)
    }

    @Test("text that is not UTF-8 is refused where the text begins")
    func badText() {
        #expect(fault(PluginDone.self, [3, 0x61, 0xFF, 0x61]) == FormatError(.badText, at: 0))
        #expect(fault(PluginDone.self, [1, 0]) == FormatError(.badText, at: 0))
    }

    @Test("a span that runs backwards is refused")
    func spans() {
        var writer = ByteWriter()
        writer.u64(5)
        writer.u64(4)
        #expect(fault(Lost.self, writer.bytes) == FormatError(.outOfRange, at: 8))
        #expect(throws: FormatError(.outOfRange, at: 8)) {
            try writer.bytes.withUnsafeBytes { try RunReader(body: $0) }
        }
    }

    @Test("an error of a later version keeps its number")
    func laterError() throws {
        let body: [UInt8] = [0x90, 3, 2, 0, 0, 0, 0]
        let reply = try body.withUnsafeBytes { try ErrorReply(body: $0) }
        #expect(reply.rawNumber == 400)
        #expect(reply.number == nil)
        #expect(reply.flags == .retry)
    }

    @Test(
        "a cursor reads back from its text",
        arguments: [Cursor(epoch: 0x9B1F_00C2_A4D3_E5F6, seq: 1234), Cursor(epoch: 1, seq: 0)])
    func cursorText(_ cursor: Cursor) {
        #expect(Cursor(cursor.description) == cursor)
    }

    @Test(
        "text that is no cursor is refused",
        arguments: [
            "", "-", "1-2", "9b1f00c2a4d3e5f6", "9b1f00c2a4d3e5f6-", "9b1f00c2a4d3e5f6-+1", "+b1f00c2a4d3e5f6-1",
            "9b1f00c2a4d3e5f6-1-2", "9b1f00c2a4d3e5f6-18446744073709551616", " 9b1f00c2a4d3e5f-1",
        ])
    func badCursorText(_ text: String) { #expect(Cursor(text) == nil) }

    @Test("a cursor is spelled as SPEC.md spells it")
    func cursorSpelling() {
        #expect(Cursor(epoch: 0x9B1F_00C2_A4D3_E5F6, seq: 1234).description == "9b1f00c2a4d3e5f6-1234")
        #expect(Cursor(epoch: 1, seq: 0).description == "0000000000000001-0")
    }

    @Test("every fault of a record has its number")
    func recordFaults() {
        #expect(ErrorNumber(forRecord: .truncated) == .badRecord)
        #expect(ErrorNumber(forRecord: .trailing) == .badRecord)
        #expect(ErrorNumber(forRecord: .outOfRange) == .badRecord)
        #expect(ErrorNumber(forRecord: .tooLarge) == .recordTooLarge)
        #expect(ErrorNumber(forRecord: .badText) == .badText)
        #expect(ErrorNumber(forRecord: .notCanonical) == .notCanonical)
        #expect(ErrorNumber(forRecord: .keyNotNormalised) == .keyNotNormalised)
        #expect(ErrorNumber(forRecord: .unknownChoice) == .unknownChoice)
    }

    @Test("errors end the connection, or can be tried again, as SPEC.md says")
    func errorTraits() {
        #expect(ErrorNumber.allCases.filter(\.isFatal).map(\.rawValue) == [1, 2, 3, 4, 5])
        #expect(ErrorNumber.allCases.filter { $0.retry == .yes }.map(\.rawValue) == [10, 30, 35, 38, 39, 40, 45])
        #expect(ErrorNumber.allCases.filter { $0.retry == .afterRestart }.map(\.rawValue) == [28, 29])
        #expect(ErrorNumber.allCases.map(\.rawValue) == Array(1...46))
    }
}
