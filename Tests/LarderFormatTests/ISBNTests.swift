import LarderFormat
import Testing

@Suite("ISBN")
struct ISBNTests {
    @Test(
        "The ways in which a number is written",
        arguments: [
            ("198765403X", 9_781_987_654_035), ("198765403x", 9_781_987_654_035), ("1-987-65403-X", 9_781_987_654_035),
            ("9781987654035", 9_781_987_654_035), ("978 1 987 65403 5", 9_781_987_654_035),
            ("ISBN 0-306-40615-2", 9_780_306_406_157), ("isbn:9780306406157", 9_780_306_406_157),
            ("979-8-602-40545-3", 9_798_602_405_453), ("8937460440", 9_788_937_460_449),
        ] as [(String, Int64)])
    func right(_ text: String, _ number: Int64) throws {
        #expect(try #require(ISBN(text)).number == number)
    }

    @Test(
        "What is none",
        arguments: [
            "", "isbn", "0123456780", "01X3456789", "198765403", "19876540355", "978198765403X", "9781987654034",
            "1234567890123", "97819876540350", "X987654031", "198765403XX", "１９８７６５４０３X",
            "99999999999999999999999999",
        ])
    func wrong(_ text: String) {
        #expect(ISBN(text) == nil)
    }

    @Test("Every ISBN-10 is the same as its ISBN-13, and one wrong digit is found in either")
    func digits() throws {
        for start in stride(from: Int64(0), to: 999_999_999, by: 7_654_321) {
            var sum = 0
            var rest = start
            for place in 2...10 {
                sum += Int(rest % 10) * place
                rest /= 10
            }
            let check = (11 - sum % 11) % 11
            let nine = String(repeating: "0", count: 9 - "\(start)".count) + "\(start)"
            let ten = nine + (check == 10 ? "X" : "\(check)")
            let isbn = try #require(ISBN(ten), "\(ten)")
            #expect(ISBN("\(isbn)") == isbn)
            for at in 0..<9 {
                var bytes = Array(ten.utf8)
                bytes[at] = bytes[at] == 0x39 ? 0x30 : bytes[at] + 1
                #expect(ISBN(String(decoding: bytes, as: UTF8.self)) == nil)
                var thirteen = Array("\(isbn)".utf8)
                thirteen[at + 3] = thirteen[at + 3] == 0x39 ? 0x30 : thirteen[at + 3] + 1
                #expect(ISBN(String(decoding: thirteen, as: UTF8.self)) == nil)
            }
        }
    }
}
