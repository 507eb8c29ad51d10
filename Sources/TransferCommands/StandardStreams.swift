import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The descriptors 0, 1 and 2.
public enum StandardStreams: Sendable {
    /// Opens those that this process was started without, on nothing: the next file that is opened would get the number otherwise, and what is
    /// printed would go into the database.
    ///
    /// Reading from the input and writing to the output fail, as with closed ones; diagnostics go nowhere, as whoever closed that stream wants
    /// none. To be called before anything else opens a file.
    public static func fillGaps() {
        for (number, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDWR)] {
            guard fcntl(number, F_GETFD) == -1, errno == EBADF else { continue }
            let opened = unsafe open("/dev/null", mode)
            guard opened >= 0, opened != number else { continue }
            _ = dup2(opened, number)
            close(opened)
        }
    }
}
