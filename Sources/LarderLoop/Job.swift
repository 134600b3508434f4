/// One piece of work off the loop, and what follows on it.
///
/// It is handed from thread to thread and never shared: `run` on another thread, then `finish` on the loop's. `finish`
/// empties it, so that what the completion captured is released on the loop's thread even if the other one holds the
/// job a moment longer.
class Job: @unchecked Sendable {
    func run() {}
    func finish() {}
}

final class ResultJob<Result: Sendable>: Job, @unchecked Sendable {
    private var work: (@Sendable () -> Result)?
    private var completion: ((Result) -> Void)?
    private var result: Result?

    init(work: @escaping @Sendable () -> Result, completion: @escaping (Result) -> Void) {
        self.work = work
        self.completion = completion
    }

    override func run() {
        result = work?()
        work = nil
    }

    override func finish() {
        let completion = self.completion
        let result = self.result
        self.completion = nil
        self.result = nil
        if let completion, let result { completion(result) }
    }
}
