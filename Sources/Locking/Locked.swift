#if TRANSFERKIT_THREAD_SANITIZER
    public import Foundation
#else
    public import Synchronization
#endif

/// A value that a lock guards. In ``withLock(_:)``, run only a few instructions, and neither call a callback nor wait.
///
/// This is the only lock type of the package; its module is not a product. The functions are public and inlinable, because the compiler
/// inlines only public, inlinable functions into other modules. Inlining matters because a transfer takes a lock for each block of data.
///
/// Thread sanitizer does not know the futex that `Mutex` uses on Linux, and reports false races. So builds for the sanitizer use `NSLock`.
public final class Locked<Value: Sendable>: Sendable {
    #if TRANSFERKIT_THREAD_SANITIZER
        @usableFromInline let lock = NSLock()
        @usableFromInline nonisolated(unsafe) var value: Value  // Only accessed between lock() and unlock().

        /// - Parameter value: The guarded value.
        @inlinable public init(_ value: Value) {
            unsafe self.value = value
        }

        /// Calls `body` with the value while the lock is held.
        ///
        /// - Parameter body: Runs on the caller's thread. Must not take this lock.
        /// - Throws: The error of `body`.
        @inlinable public func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
            lock.lock()
            defer { lock.unlock() }
            return unsafe try body(&value)
        }
    #else
        @usableFromInline let mutex: Mutex<Value>

        /// - Parameter value: The guarded value.
        @inlinable public init(_ value: Value) {
            mutex = Mutex(value)
        }

        /// Calls `body` with the value while the lock is held.
        ///
        /// - Parameter body: Runs on the caller's thread. Must not take this lock.
        /// - Throws: The error of `body`.
        @inlinable public func withLock<Result, Failure: Error>(_ body: (inout Value) throws(Failure) -> Result) throws(Failure) -> Result {
            // The value is Sendable, so passing it into and out of the isolation region is safe. `sending` can't express that for a generic
            // result.
            try mutex.withLock { (value: inout sending Value) throws(Failure) -> Result in try body(&value) }
        }
    #endif
}
