#if TRANSFERKIT_THREAD_SANITIZER
    import Foundation
#else
    import Synchronization
#endif

/// A value behind a lock that is held for a few instructions only: never over a call out or an `await`.
///
/// The one lock type of this package. Thread sanitizer does not know the futex that `Mutex` uses on Linux and reports races that are none, so
/// the build for that job takes `NSLock`.
package final class Locked<Value: Sendable>: Sendable {
    #if TRANSFERKIT_THREAD_SANITIZER
        private let lock = NSLock()
        private nonisolated(unsafe) var value: Value  // Only touched between lock() and unlock().

        package init(_ value: Value) {
            unsafe self.value = value
        }

        package func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
            lock.lock()
            defer { lock.unlock() }
            return unsafe try body(&value)
        }
    #else
        private let mutex: Mutex<Value>

        package init(_ value: Value) {
            mutex = Mutex(value)
        }

        package func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
            // The value is Sendable, so handing it in and out of the region is safe; `sending` can't express that for a generic result.
            try mutex.withLock { (value: inout sending Value) throws(Failure) -> Result in try body(&value) }
        }
    #endif
}
