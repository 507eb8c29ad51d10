import CSSH2
package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension FileDescriptor {
    /// Creates a pipe that child processes do not inherit. Throws an `Errno`.
    ///
    /// On Linux, this also holds for a child process that another thread starts during the call.
    package static func privatePipe() throws -> (reading: FileDescriptor, writing: FileDescriptor) {
        #if os(Linux)
            var ends: [CInt] = [-1, -1]
            guard unsafe cssh2_private_pipe(&ends) == 0 else { throw Errno(rawValue: errno) }
            return (FileDescriptor(rawValue: ends[0]), FileDescriptor(rawValue: ends[1]))
        #else
            let (reading, writing) = try pipe()
            for end in [reading, writing] { _ = fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) }
            return (reading, writing)
        #endif
    }
}
