package import Foundation

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension Process {
    /// Waits until the process has ended. Blocks, as `waitUntilExit()` does; that one waits for a socket of which other processes that are started
    /// at the same time have copies, and so for their ends, too.
    ///
    /// - Returns: The exit status, or the number of the signal that ended it.
    @discardableResult package func awaitEnd() -> Int32 {
        #if canImport(Glibc)
            var information = unsafe siginfo_t()
            while true {
                if unsafe waitid(P_PID, id_t(processIdentifier), &information, WEXITED | WNOWAIT) == 0 {
                    return unsafe information._sifields._sigchld.si_status
                }
                guard errno == EINTR else { break }
            }
        #endif
        // Foundation was first to learn of the end.
        waitUntilExit()
        return terminationStatus
    }
}
