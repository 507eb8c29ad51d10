import Dispatch

/// Runs blocking calls on a dispatch queue, because the threads of the cooperative pool must not block.
enum BlockingWork {
    private static let queue = DispatchQueue(label: "transferq.blocking", attributes: .concurrent)

    static func run<Value: Sendable, Failure: Error>(
        _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: Result(catching: body)) }
        }
        return try result.get()
    }
}
