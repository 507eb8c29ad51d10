import Dispatch
import Locking

/// Blocks this thread, which is libFuzzer's and not of the cooperative pool, until asynchronous work is done.
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
