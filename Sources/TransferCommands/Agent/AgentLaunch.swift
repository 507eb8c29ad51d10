import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Starts this program as an agent in a new process.
enum AgentLaunch {
    /// Starts the agent and waits until it is ready or has failed. Blocks.
    ///
    /// - Parameters:
    ///   - arguments: The arguments after the program's name, without `--ready-descriptor`.
    ///   - log: The agent's log file, for error messages.
    /// - Returns: The agent's process ID.
    static func launch(_ arguments: [[UInt8]], log: FilePath) throws(CommandFailure) -> pid_t {
        do {
            let (reading, writing) = try FileDescriptor.pipe()
            defer { try? reading.close() }
            closeAllInChildren()
            let process: pid_t
            do {
                defer { try? writing.close() }
                process = try spawn(arguments + [Array("--ready-descriptor".utf8), Array("\(readyNumber)".utf8)], ready: writing)
            }
            let text = try readToEnd(reading)
            guard let report = try? JSONDecoder().decode(StartReporter.StartResult.self, from: text) else {
                throw CommandFailure(.storage, "The agent exited before it was ready. See \(log).")
            }
            guard let status = report.status else { return process }
            throw CommandFailure(ExitStatus(rawValue: status) ?? .storage, report.message ?? "Cannot start the agent. See \(log).")
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(.storage, "Cannot start the agent: \(error).")
        }
    }

    /// The descriptor on which the agent reports the result of its start: the first one after the standard streams.
    private static let readyNumber: CInt = 3

    /// Marks all descriptors after the standard streams close-on-exec. Otherwise the agent would keep inherited descriptors open, such as a
    /// shell's pipe. The agent gets a copy of the only descriptor that it needs.
    private static func closeAllInChildren() {
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: "/dev/fd")) ?? []
        for number in numbers.compactMap({ CInt($0) }) where number > STDERR_FILENO { _ = fcntl(number, F_SETFD, FD_CLOEXEC) }
    }

    private static func readToEnd(_ descriptor: FileDescriptor) throws -> Data {
        var data = Data()
        var bytes = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = try unsafe bytes.withUnsafeMutableBytes { unsafe try descriptor.read(into: $0) }
            if count == 0 { return data }
            data += bytes.prefix(count)
        }
    }

    /// Starts the process with posix_spawn(3), without this process's terminal, signal state and descriptors.
    private static func spawn(_ arguments: [[UInt8]], ready: FileDescriptor) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        try check(unsafe posix_spawn_file_actions_init(&actions))
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        // This must be the first action, because the later actions replace descriptors 0 to 2, and the source may be one of them. A copy of
        // a descriptor to itself would stay close-on-exec, so a source with the target's number is duplicated first.
        let source = ready.rawValue == readyNumber ? fcntl(ready.rawValue, F_DUPFD_CLOEXEC, readyNumber + 1) : ready.rawValue
        try check(unsafe posix_spawn_file_actions_adddup2(&actions, source, readyNumber))
        for number: CInt in 0...2 {
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
        let program = executable
        var argv = unsafe ([program.bytes] + arguments).map { unsafe strdup(($0 + [0]).map(CChar.init(bitPattern:))) } + [nil]
        defer { unsafe argv.forEach { unsafe free($0) } }
        let variable = unsafe strdup("\(CrashReports.variable.name)=\(CrashReports.variable.value)")
        defer { unsafe free(variable) }
        // The variable comes last: getenv(3) returns the first of two variables with the same name, so a value set by the user takes precedence.
        var variables = unsafe inheritedVariables + [variable, nil]
        var process: pid_t = 0
        let code = unsafe program.withPlatformString { unsafe posix_spawn(&process, $0, &actions, &attributes, &argv, &variables) }
        if source != ready.rawValue { close(source) }
        try check(code)
        return process
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

    /// The path of this program's file.
    static var executable: FilePath {
        Bundle.main.executablePath.map { FilePath($0) } ?? FilePath(bytes: ProcessArguments.words.first ?? Array("transferq".utf8))
    }

    private static func check(_ code: CInt) throws {
        if code != 0 { throw Errno(rawValue: code) }
    }
}
