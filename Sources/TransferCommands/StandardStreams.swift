import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

enum StandardStreams {
    /// Opens `/dev/null` for each closed standard stream.
    ///
    /// Otherwise, the next opened file, such as the database, would get the stream's number, and the program would write its output there.
    /// Reading the input and writing the output still fail, as with closed streams. Diagnostics go to `/dev/null`. Call this method before
    /// this process opens any file.
    static func fillGaps() {
        for (number, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDWR)] {
            guard fcntl(number, F_GETFD) == -1, errno == EBADF else { continue }
            let opened = unsafe open("/dev/null", mode)
            guard opened >= 0, opened != number else { continue }
            _ = dup2(opened, number)
            close(opened)
        }
    }
}
