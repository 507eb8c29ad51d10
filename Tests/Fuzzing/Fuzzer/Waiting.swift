import Dispatch
import Locking

/// Blocks until asynchronous work is complete. This thread is libFuzzer's, and not one of the cooperative pool.
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
