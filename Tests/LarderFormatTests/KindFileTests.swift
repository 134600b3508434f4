import Testing

@testable import LarderFormat

@Suite("Kind files")
struct KindFileTests {
    @Test("the shipped kinds are those of Protocol/kinds", arguments: Kind.shipped.map(\.name))
    func shipped(_ name: String) throws {
        let kind = try #require(Kind.shipped.first { $0.name == name })
        let declared = try Kind(file: repositoryFile("Protocol/kinds/\(kind.name).json"))
        #expect(declared == kind)
        #expect(declared.encoded == kind.encoded)
    }

    @Test("shipped kinds have ascending numbers up to 63")
    func numbers() {
        #expect(Kind.shipped.map(\.number) == [1, 2, 3])
        #expect(Kind.joke.keyIsOneUUID)
        #expect(!Kind.title.keyIsOneUUID)
    }

    private func fault(_ json: String, number: Int? = nil) -> String? {
        do throws(KindFileError) {
            _ = try Kind(file: Array(json.utf8), number: number)
            return nil
        } catch { return error.description }
    }

    private func kind(_ fields: String, key: String = #"["id"]"#, label: String = "[]") -> String {
        #"{"kind":"x","number":64,"key":\#(key),"label":\#(label),"fields":[\#(fields)]}"#
    }

    private let id = #"{"number":1,"name":"id","type":"identifier","required":true}"#

    @Test("a kind may leave its number to the library")
    func withoutNumber() {
        let json = #"{"kind":"x","key":["id"],"label":["id"],"fields":[\#(id)]}"#
        #expect(fault(json) == "number: missing, and none was given")
        #expect(fault(json, number: 70) == nil)
    }

    @Test("a file that declares no kind names the place and the reason")
    func faults() {
        #expect(fault(kind(id)) == nil)
        #expect(fault("[]") == "expected an object, not an array")
        #expect(fault("{")?.contains("line 1, column 2") == true)
        #expect(fault(#"{"kind":"X"}"#)?.hasPrefix("kind: a name is") == true)
        #expect(fault(#"{"kind":"x","knid":1}"#) == "knid: no such member is known")
        #expect(fault(kind(#"{"number":1,"name":"id"}"#)) == "fields[0].type: missing")
        #expect(
            fault(kind(#"{"number":1,"name":"id","type":"float"}"#))?.hasPrefix("fields[0].type: expected one of bool")
                == true)
        #expect(
            fault(kind(#"{"number":"1","name":"id","type":"int"}"#))
                == "fields[0].number: expected a whole number from 1")
        #expect(
            fault(kind(#"{"number":1,"name":"id","type":"int","required":1}"#))
                == "fields[0].required: expected true or false, not a number")
        #expect(
            fault(kind(#"{"number":1,"name":"id","type":"int"}"#))?.hasPrefix("fields[0]: a key field is required")
                == true)
        #expect(
            fault(kind(id + #",{"number":1,"name":"b","type":"int"}"#))
                == "fields[1]: fields stand in ascending order of number")
        #expect(fault(kind(id + #",{"number":2,"name":"id","type":"int"}"#)) == "fields[1]: this name is there already")
        #expect(
            fault(kind(id + #",{"number":257,"name":"b","type":"int"}"#)) == "fields[1]: a field's number is 1 to 256")
        #expect(
            fault(kind(id + #",{"number":2,"name":"b","type":"choice"}"#))
                == "fields[1].values: missing: a choice needs values")
        #expect(
            fault(kind(id + #",{"number":2,"name":"b","type":"int","values":{}}"#))
                == "fields[1].values: only a choice has values")
        #expect(
            fault(kind(id + #",{"number":2,"name":"b","type":"choice","values":{"01":"a"}}"#))?.hasPrefix(
                "fields[1].values") == true)
        #expect(
            fault(kind(id + #",{"number":2,"name":"b","type":"choice","values":{"1":"a","2":"a"}}"#))?.hasPrefix(
                "fields[1]: its values need") == true)
        #expect(
            fault(kind(id + #",{"number":2,"name":"b","type":"int","not_blank":true}"#))?.hasPrefix(
                "fields[1]: not_blank is for a text") == true)
        #expect(
            fault(kind(#"{"number":1,"name":"id","type":"text","required":true,"not_zero":true}"#))?.hasPrefix(
                "fields[0]: not_blank is for a text") == true)
        #expect(fault(kind(id, label: #"["id","id"]"#)) == "label: a field is named twice")
        #expect(fault(kind(id, key: #"["di"]"#)) == "key[0]: not the name of a field of this kind")
        #expect(fault(kind(id, key: "[]"))?.hasPrefix("key: the key is") == true)
        #expect(fault(kind(id, label: #"["t"]"#)) == "label[0]: not the name of a field of this kind")
    }
}
