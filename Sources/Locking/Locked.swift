#if TRANSFERKIT_THREAD_SANITIZER
    public import Foundation
#else
    public import Synchronization
#endif

/// A value behind a lock that is held for a few instructions only: never over a call out or an `await`.
///
/// The one lock type of this package, in a module that is no product of it. It is public and inlinable because only such a function is inlined
/// into another module, and a transfer takes locks for each piece of its data.
///
/// Thread sanitizer does not know the futex that `Mutex` uses on Linux and reports races that are none, so the build for that job takes `NSLock`.
public final class Locked<Value: Sendable>: Sendable {
    #if TRANSFERKIT_THREAD_SANITIZER
        @usableFromInline let lock = NSLock()
        @usableFromInline nonisolated(unsafe) var value: Value  // Only touched between lock() and unlock().

        /// - Parameter value: What the lock guards.
        @inlinable public init(_ value: Value) {
            unsafe self.value = value
        }

        /// Calls `body` with the value while the lock is held.
        ///
        /// - Parameter body: Runs on the caller's thread, and must not take this lock again.
        /// - Throws: What `body` throws.
        @inlinable public func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
            lock.lock()
            defer { lock.unlock() }
            return unsafe try body(&value)
        }
    #else
        @usableFromInline let mutex: Mutex<Value>

        /// - Parameter value: What the lock guards.
        @inlinable public init(_ value: Value) {
            mutex = Mutex(value)
        }

        /// Calls `body` with the value while the lock is held.
        ///
        /// - Parameter body: Runs on the caller's thread, and must not take this lock again.
        /// - Throws: What `body` throws.
        @inlinable public func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
            // The value is Sendable, so handing it in and out of the region is safe; `sending` can't express that for a generic result.
            try mutex.withLock { (value: inout sending Value) throws(Failure) -> Result in try body(&value) }
        }
    #endif
}
