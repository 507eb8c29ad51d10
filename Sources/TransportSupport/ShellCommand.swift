package import SystemPackage

#if canImport(Glibc)
    package import Glibc
#elseif canImport(Darwin)
    package import Darwin
#endif

/// Starts shell commands.
package enum ShellCommand {
    /// Starts `/bin/sh -c` with posix_spawn(3). The command starts with default signal handlers and no blocked signals. It inherits all
    /// descriptors that are not close-on-exec.
    ///
    /// - Parameters:
    ///   - command: The command.
    ///   - descriptors: The descriptors that replace standard streams, by the number of the stream: 0 for input, 1 for output, 2 for errors.
    ///   - hasOwnGroup: Whether the command gets its own process group, so that an interrupt from the terminal does not reach it.
    /// - Returns: The process ID. The caller must wait for the process to exit (wait(2)).
    /// - Throws: The system's error if the process can't be started.
    package static func spawn(_ command: String, descriptors: [CInt: FileDescriptor], hasOwnGroup: Bool) throws(Errno) -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        try check(unsafe posix_spawn_file_actions_init(&actions))
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors {
            try check(unsafe posix_spawn_file_actions_adddup2(&actions, descriptor.rawValue, number))
        }
        var attributes = posix_spawnattr_t()
        try check(unsafe posix_spawnattr_init(&attributes))
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        unsafe sigemptyset(&none)
        unsafe sigfillset(&all)
        try check(unsafe posix_spawnattr_setsigmask(&attributes, &none))
        try check(unsafe posix_spawnattr_setsigdefault(&attributes, &all))
        let flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (hasOwnGroup ? POSIX_SPAWN_SETPGROUP : 0)
        try check(unsafe posix_spawnattr_setflags(&attributes, Int16(flags)))
        let arguments: [String] = ["/bin/sh", "-c", command]
        var words = unsafe arguments.map { unsafe strdup($0) } + [nil]
        defer { unsafe words.forEach { unsafe free($0) } }
        var process: pid_t = 0
        try check(unsafe posix_spawn(&process, "/bin/sh", &actions, &attributes, &words, environ))
        return process
    }

    private static func check(_ code: CInt) throws(Errno) {
        if code != 0 { throw Errno(rawValue: code) }
    }
}
