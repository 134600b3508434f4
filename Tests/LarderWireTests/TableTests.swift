// The registries against Protocol/errors.json and Protocol/messages.json.

import LarderWire
import Testing

@Suite("tables")
struct TableTests {
    @Test("errors.json has the numbers, names and traits of the code, and no others")
    func errors() throws {
        let table = try SharedFiles.list("errors.json", "errors")
        #expect(table.map { $0.int("number") } == ErrorNumber.allCases.map { Int($0.rawValue) })
        for row in table {
            let number = try #require(ErrorNumber(rawValue: UInt16(row.int("number"))))
            #expect(row.text("name") == number.name)
            #expect(row["fatal"] as? Bool == number.isFatal, "\(number.name)")
            let retry: [ErrorNumber.Retry: String] = [.no: "no", .yes: "yes", .afterRestart: "after_restart"]
            #expect(row.text("retry") == retry[number.retry], "\(number.name)")
        }
    }

    @Test("messages.json has the types of the code, with their direction, class and reply")
    func messages() throws {
        let table = try SharedFiles.list("messages.json", "messages")
        #expect(Set(table.map { $0.int("number") }) == Set(MessageType.allCases.map { Int($0.rawValue) }))
        for row in table {
            let type = try #require(MessageType(rawValue: UInt8(row.int("number"))))
            #expect(row.text("name") == type.name)
            let direction = type.isClients ? (type.isHosts ? "both" : "client") : "host"
            #expect(row.text("direction") == direction, "\(type.name)")
            let roles: [MessageType.Role: String] = [
                .request: "request", .reply: "reply", .notice: "notice", .part: "stream",
            ]
            #expect(row.text("class") == roles[type.role], "\(type.name)")
            #expect(row["reply"] as? String == type.finalReply?.name, "\(type.name)")
            #expect(row["final"] as? Bool == (type.role == .reply), "\(type.name)")
        }
    }
}
