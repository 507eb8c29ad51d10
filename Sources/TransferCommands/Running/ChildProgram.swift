import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Starts other programs with posix_spawn(3). They inherit neither this process's signal handling nor its descriptors after the standard streams.
enum ChildProgram {
    /// What a descriptor of the program refers to.
    enum Source {
        case descriptor(FileDescriptor)
        /// The file `/dev/null`.
        case null
    }

    /// Starts a program.
    ///
    /// - Parameters:
    ///   - program: The path of the program. A name without a slash is searched for in `PATH`.
    ///   - arguments: The arguments after the program's name.
    ///   - descriptors: The program's descriptors, by number. The program inherits the standard streams that this dictionary omits,
    ///     and no other descriptors.
    ///   - variable: A variable, as `NAME=VALUE`, to add to the inherited environment. An existing variable with the same name takes precedence.
    /// - Returns: The process ID. The caller must reap the process.
    /// - Throws: An `Errno` if the program can't be started.
    static func start(
        _ program: FilePath, _ arguments: [[UInt8]], descriptors: [CInt: Source], variable: String? = nil
    ) throws -> pid_t {
        closeAllInChildren()
        var actions = unsafe posix_spawn_file_actions_t()
        try check(unsafe posix_spawn_file_actions_init(&actions))
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        var copies: [CInt] = []
        defer { for copy in copies { close(copy) } }
        // The sources are copied before /dev/null is opened, because /dev/null may replace a descriptor that is still to be copied. dup2(2) to
        // the same number would leave the descriptor close-on-exec, so such a source is duplicated first.
        for (number, source) in descriptors.sorted(by: { $0.key > $1.key }) {
            guard case .descriptor(let descriptor) = source else { continue }
            var original = descriptor.rawValue
            if original == number {
                original = fcntl(original, F_DUPFD_CLOEXEC, (descriptors.keys.max() ?? 2) + 1)
                guard original >= 0 else { throw Errno(rawValue: errno) }
                copies.append(original)
            }
            try check(unsafe posix_spawn_file_actions_adddup2(&actions, original, number))
        }
        for (number, source) in descriptors {
            guard case .null = source else { continue }
            try check(unsafe posix_spawn_file_actions_addopen(&actions, number, "/dev/null", number == 0 ? O_RDONLY : O_WRONLY, 0))
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
        var argv = unsafe ([program.bytes] + arguments).map { unsafe strdup(($0 + [0]).map(CChar.init(bitPattern:))) } + [nil]
        defer { unsafe argv.forEach { unsafe free($0) } }
        let addition = unsafe variable.flatMap { unsafe strdup($0) }
        defer { unsafe free(addition) }
        // The variable comes last, because getenv(3) returns the first of two variables with the same name.
        var variables = unsafe inheritedVariables + [addition, nil]
        var process: pid_t = 0
        let code = unsafe program.withPlatformString { unsafe posix_spawnp(&process, $0, &actions, &attributes, &argv, &variables) }
        try check(code)
        return process
    }

    /// Waits until a process has ended, without reaping it (waitid(2), WNOWAIT). Blocks.
    static func waitForEnd(of process: pid_t) {
        var information = unsafe siginfo_t()
        while unsafe waitid(P_PID, id_t(process), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    }

    /// Waits until a process has ended, and reaps it. Blocks.
    ///
    /// - Returns: How the process ended, for messages; nil if its exit status was 0.
    static func failure(of process: pid_t) -> String? {
        var status: CInt = 0
        while unsafe waitpid(process, &status, 0) < 0 {
            guard errno == EINTR else { return "its end can't be observed (\(Errno(rawValue: errno)))" }
        }
        // The equivalents of WTERMSIG and WEXITSTATUS (wait(2)). Swift does not import these macros.
        let signal = status & 0x7F
        if signal != 0 { return "signal \(signal) ended it" }
        let code = status >> 8 & 0xFF
        return code == 0 ? nil : "its exit status was \(code)"
    }

    /// Marks all descriptors after the standard streams close-on-exec. Otherwise, the program would keep inherited descriptors open, such as a
    /// shell's pipe.
    private static func closeAllInChildren() {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/dev/fd")) ?? []
        for number in numbers.compactMap({ CInt($0) }) where number > STDERR_FILENO { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
    }

    private static var inheritedVariables: [UnsafeMutablePointer<CChar>?] {
        var variables: [UnsafeMutablePointer<CChar>?] = unsafe []
        var next = unsafe environ
        while let variable = unsafe next.pointee {
            unsafe variables.append(variable)
            unsafe next += 1
        }
        return unsafe variables
    }

    private static func check(_ code: CInt) throws {
        if code != 0 { throw Errno(rawValue: code) }
    }
}
