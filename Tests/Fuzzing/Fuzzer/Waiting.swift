import Dispatch
import Locking

/// Blocks until asynchronous work is complete, and returns the result of the work. Must be called on libFuzzer's thread, because a thread of the
/// cooperative pool must not block.
func wait<Value: Sendable>(for work: @escaping @Sendable () async -> Value) -> Value {
    let result = Locked<Value?>(nil)
    let done = DispatchSemaphore(value: 0)
    Task.detached {
        let value = await work()
        result.withLock { $0 = value }
        done.signal()
    }
    while true {
        done.wait()
        if let value = result.withLock({ $0 }) { return value }
    }
}
