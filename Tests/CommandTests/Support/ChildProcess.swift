import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// posix_spawn(3) and waitpid(2).
enum ChildProcess {
    /// Starts a program with these standard descriptors, and otherwise a clean slate: no signal blocked or ignored, as the threads that run
    /// tests have most of them blocked, and no other descriptor that is marked to be closed.
    static func spawn(
        _ program: FilePath, _ arguments: [[UInt8]], environment: [String: String], workingFolder: FilePath, descriptors: [FileDescriptor]
    ) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        try check(unsafe posix_spawn_file_actions_init(&actions))
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors.enumerated() {
            try check(unsafe posix_spawn_file_actions_adddup2(&actions, descriptor.rawValue, CInt(number)))
        }
        var attributes = posix_spawnattr_t()
        try check(unsafe posix_spawnattr_init(&attributes))
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        unsafe sigemptyset(&none)
        unsafe sigfillset(&all)
        try check(unsafe posix_spawnattr_setsigmask(&attributes, &none))
        try check(unsafe posix_spawnattr_setsigdefault(&attributes, &all))
        try check(unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)))

        // The call that changes the working folder is not in POSIX before 2024; a shell does it everywhere.
        let shell: FilePath = "/bin/sh"
        let script = Array("cd \"$1\" && shift && exec \"$@\"".utf8)
        let words = [shell.bytes, Array("-c".utf8), script, shell.bytes, workingFolder.bytes, program.bytes] + arguments
        var argv = unsafe words.map { unsafe cString($0) } + [nil]
        var envp = unsafe environment.map { unsafe cString(Array("\($0.key)=\($0.value)".utf8)) } + [nil]
        defer { unsafe (argv + envp).forEach { unsafe free($0) } }
        var process: pid_t = 0
        try check(unsafe shell.withPlatformString { unsafe posix_spawn(&process, $0, &actions, &attributes, &argv, &envp) })
        return process
    }

    /// Blocks until the process has ended; it can be signalled and has to be reaped afterwards.
    static func awaitEnd(_ process: pid_t) {
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    }

    /// How an ended process ended: the exit status, or the number of the signal that killed it.
    static func reap(_ process: pid_t) -> (status: Int32, wasKilled: Bool) {
        var status: CInt = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
        // The macros of wait(2), which Swift does not import.
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8 & 0xFF, false) : (signal, true)
    }

    private static func cString(_ bytes: [UInt8]) -> UnsafeMutablePointer<CChar>? {
        unsafe strdup((bytes + [0]).map(CChar.init(bitPattern:)))
    }

    private static func check(_ code: CInt) throws {
        if code != 0 { throw Errno(rawValue: code) }
    }
}
