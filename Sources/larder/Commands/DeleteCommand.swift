// `larder delete`.

import LarderFormat
import LarderWire

enum DeleteCommand: Command {
    static let name = "delete"
    static let purpose = "delete records by their keys"
    static let synopsis = ["delete KEY…", "delete KIND VALUE…"]
    static let details = """
        Says of each key whether it was deleted or not found; exits with 1 where one was not. When the command returns
        the deletes are durable.
        """
    static let examples = [
        (line: "larder delete title:tmdb/movie/603", does: "deletes one film"),
        (line: "larder delete book isbn 9788937460449 --json", does: "deletes a book and prints the outcome as JSON"),
    ]

    /// Keys of one batch.
    private static let batchCount = 1_000

    static func run(_ context: Context) throws -> Int32 {
        try KeyArguments.expectSome(context.options.arguments, command: name)
        let session = try context.session()
        let keys = try KeyArguments.read(context.options.arguments, try session.kinds(), command: name)
        var isComplete = true
        for start in stride(from: 0, to: keys.count, by: batchCount) {
            let batch = keys[start..<min(start + batchCount, keys.count)]
            var builder = WriteBuilder(targetByteCount: session.client.limits.batchByteCountMax)
            for key in batch {
                guard key.bytes.withUnsafeBytes({ builder.delete($0, kind: key.kind.number) }) == .appended else {
                    throw Failure("deleting \(key.text)", "the keys are too long for one batch", "name fewer at a time")
                }
            }
            let written = try attempt("deleting") { try session.client.write(&builder, flags: .results) }
            let reasons = Dictionary(written.refusals.map { ($0.position, $0.reason) }) { first, _ in first }
            for (index, (key, result)) in zip(batch, written.results ?? []).enumerated() {
                if result.outcome != .deleted { isComplete = false }
                report(key, result, reasons[index], context)
            }
        }
        return isComplete ? 0 : 1
    }

    private static func report(_ key: RecordKey, _ result: Written.Result, _ reason: String?, _ context: Context) {
        let outcome =
            switch result.outcome {
            case .deleted: "deleted"
            case .notFound: "not_found"
            default: "refused"
            }
        if context.isJSON {
            context.output.json {
                $0.member("key", key.text)
                $0.member("outcome", outcome)
                if result.outcome == .deleted { $0.member("seq", result.seq) }
                if let reason { $0.member("reason", reason) }
            }
        } else {
            let words = outcome == "not_found" ? "not found" : outcome
            context.output.line(DisplayText.visible(key.text) + ": " + words + (reason.map { ": \($0)" } ?? ""))
        }
    }
}
