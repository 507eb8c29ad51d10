import Dispatch

/// Runs calls that may wait for a disk, or for a network behind one, away from the cooperative thread pool, whose threads must never block.
enum DiskThread {
    private static let queue = DispatchQueue(label: "transferkit.disk", attributes: .concurrent)

    static func run<Value: Sendable, Failure: Error>(_ body: @escaping @Sendable () throws(Failure) -> Value) async throws(Failure) -> Value
    {
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: Result(catching: body)) }
        }
        return try result.get()
    }
}
