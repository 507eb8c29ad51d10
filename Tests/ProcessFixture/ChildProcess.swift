import Foundation
import Locking
package import SystemPackage
import TransferCore

#if canImport(Glibc)
    package import Glibc
#elseif canImport(Darwin)
    package import Darwin
#endif

/// Starts and reaps child processes with posix_spawn(3) and waitpid(2). It replaces Foundation's `Process`, which crashed in a process with a
/// thousand descriptors and threads, and which waits until all processes that inherited one of its descriptors have ended.
package enum ChildProcess {
    /// A lock that delays the start of a program while a new pipe lacks its close-on-exec flags. The value is an unused `Int` instead of
    /// `Void`, because Thread Sanitizer attributes an access to a zero-sized value to the enclosing object.
    private static let gate = Locked(0)

    /// Creates a pipe that programs inherit only through ``spawn(_:_:environment:workingFolder:descriptors:)``.
    package static func pipe() throws -> (reading: FileDescriptor, writing: FileDescriptor) {
        try gate.withLock { _ in
            let ends = try FileDescriptor.pipe()
            for end in [ends.readEnd, ends.writeEnd] { _ = fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) }
            return (ends.readEnd, ends.writeEnd)
        }
    }

    /// Starts a program that inherits only `descriptors`, as its standard descriptors. If the program inherited a socket, the connection
    /// would stay open after the socket's owner closes it. Unblocks all signals, because the threads that run tests block most of them, and
    /// resets their handlers.
    ///
    /// - Parameters:
    ///   - environment: The program's complete environment; nil to inherit the test process's.
    ///   - workingFolder: The working directory; nil to inherit the test process's.
    package static func spawn(
        _ program: FilePath, _ arguments: [[UInt8]], environment: [String: String]? = nil, workingFolder: FilePath? = nil,
        descriptors: [FileDescriptor]
    ) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        try check(unsafe posix_spawn_file_actions_init(&actions))
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors.enumerated() {
            try check(unsafe posix_spawn_file_actions_adddup2(&actions, descriptor.rawValue, CInt(number)))
        }
        if let addCloseFrom = unsafe addCloseFrom { try check(unsafe addCloseFrom(&actions, CInt(descriptors.count))) }
        var attributes = posix_spawnattr_t()
        try check(unsafe posix_spawnattr_init(&attributes))
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var (none, all) = (sigset_t(), sigset_t())
        unsafe sigemptyset(&none)
        unsafe sigfillset(&all)
        try check(unsafe posix_spawnattr_setsigmask(&attributes, &none))
        try check(unsafe posix_spawnattr_setsigdefault(&attributes, &all))
        try check(unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF)))

        var (executable, words) = (program, [program.bytes] + arguments)
        if let workingFolder {
            // The spawn action that changes the working directory has been in POSIX only since 2024; a shell works everywhere.
            executable = "/bin/sh"
            let script = Array("cd \"$1\" && shift && exec \"$@\"".utf8)
            words = [executable.bytes, Array("-c".utf8), script, executable.bytes, workingFolder.bytes] + words
        }
        let variables = environment ?? ProcessInfo.processInfo.environment
        var argv = unsafe words.map { unsafe cString($0) } + [nil]
        var envp = unsafe variables.map { unsafe cString(Array("\($0.key)=\($0.value)".utf8)) } + [nil]
        defer { unsafe (argv + envp).forEach { unsafe free($0) } }
        var process: pid_t = 0
        let code = gate.withLock { _ in
            unsafe executable.withPlatformString { unsafe posix_spawn(&process, $0, &actions, &attributes, &argv, &envp) }
        }
        try check(code)
        return process
    }

    /// Blocks until the process has ended, but does not reap it: its process ID stays valid until ``reap(_:)``.
    package static func awaitEnd(_ process: pid_t) {
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) != 0, errno == EINTR {}
    }

    /// Reaps a process that has ended. Returns its exit status, or the signal that killed it.
    @discardableResult package static func reap(_ process: pid_t) -> (status: Int32, wasKilled: Bool) {
        var status: CInt = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
        // The equivalents of WTERMSIG and WEXITSTATUS (wait(2)). Swift does not import these macros.
        let signal = status & 0x7F
        return signal == 0 ? (status >> 8 & 0xFF, false) : (signal, true)
    }

    /// posix_spawn_file_actions_addclosefrom_np(3) of glibc 2.34 and later. The header declares this function only if extensions are
    /// enabled.
    private static var addCloseFrom: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, CInt) -> CInt)? {
        guard let symbol = unsafe dlsym(nil, "posix_spawn_file_actions_addclosefrom_np") else { return nil }
        return unsafe unsafeBitCast(symbol, to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, CInt) -> CInt).self)
    }

    private static func cString(_ bytes: [UInt8]) -> UnsafeMutablePointer<CChar>? {
        unsafe strdup((bytes + [0]).map(CChar.init(bitPattern:)))
    }

    private static func check(_ code: CInt) throws {
        if code != 0 { throw Errno(rawValue: code) }
    }
}
