// What is wrong with a condition, shown where it is.

import LarderClient
import LarderFormat
import LarderWire

enum ConditionText {
    /// Runs calls of a client that carry a condition. Of a bad one the place is shown.
    static func attempt<Result>(_ what: String, _ condition: String, _ body: () throws -> Result) throws -> Result {
        do { return try body() } catch ClientError.larder(let reply) where reply.number == .badCondition {
            throw Failure.usage("the condition", reply.message + pointer(condition, place: reply.place))
        } catch let error as ClientError { throw Failure(what, error) }
    }

    /// The condition on a line of its own, and a caret below.
    ///
    /// - Parameter place: 1 + the offset in bytes; 0: unknown.
    static func pointer(_ condition: String, place: Int) -> String {
        let shown = "\n  " + DisplayText.visible(condition)
        guard place > 0, place <= condition.utf8.count + 1 else { return shown }
        let before = DisplayText.visible(String(decoding: condition.utf8.prefix(place - 1), as: UTF8.self))
        return shown + "\n  " + String(repeating: " ", count: DisplayText.width(before)) + "^"
    }
}
