package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs a function on a new thread, which ends when the function returns. The function may block.
///
/// The thread blocks SIGPIPE (pthread_sigmask(3)). A library that writes to a closed socket then gets an error, and the process continues.
///
/// - Throws: The system's error if the thread can't be created.
package func startThread(_ body: @escaping @Sendable () -> Void) throws(Errno) {
    let context = unsafe Unmanaged.passRetained(ThreadBody(body)).toOpaque()
    #if canImport(Darwin)
        var thread: pthread_t?
    #else
        var thread = pthread_t()
    #endif
    let status = unsafe pthread_create(
        &thread, nil,
        { context in
            #if canImport(Glibc)
                guard let context = unsafe context else { return nil }
            #endif
            let body = unsafe Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue()
            var signals = sigset_t()
            unsafe sigemptyset(&signals)
            unsafe sigaddset(&signals, SIGPIPE)
            unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
            body.run()
            return nil
        }, context)
    guard status == 0 else {
        unsafe Unmanaged<ThreadBody>.fromOpaque(context).release()
        throw Errno(rawValue: status)
    }
    #if canImport(Darwin)
        if let thread = unsafe thread { unsafe pthread_detach(thread) }
    #else
        pthread_detach(thread)
    #endif
}

/// Wraps a function in an object, because only an object can be passed through a C pointer.
private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void

    init(_ run: @escaping @Sendable () -> Void) {
        self.run = run
    }
}
