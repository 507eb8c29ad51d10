package import Foundation
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A program that ends when this object is told to, or goes, or the tests end in whatever way: a shell that waits for the end of a pipe ends it.
package final class GuardedProcess: Sendable {
    package struct CannotStart: Error, CustomStringConvertible {
        package let description: String
    }

    private struct State {
        var shell: pid_t?
        var pipe: CInt
    }

    private let state: Locked<State>

    /// One at a time, so that no program inherits the pipe of another.
    private static let gate = Locked(())

    /// Starts a program, by its absolute path.
    ///
    /// - Parameters:
    ///   - log: Gets all that it says.
    ///   - environment: Variables beside those of the tests.
    package init(_ arguments: [String], log: URL, environment: [String: String] = [:]) throws {
        state = Locked(try Self.gate.withLock { _ in try Self.start(arguments, log, environment) })
    }

    private static func start(_ arguments: [String], _ log: URL, _ environment: [String: String]) throws -> State {
        var ends: [CInt] = [0, 0]
        guard unsafe pipe(&ends) == 0 else { throw CannotStart(description: "No pipe can be made.") }
        _ = fcntl(ends[0], F_SETFD, FD_CLOEXEC)
        _ = fcntl(ends[1], F_SETFD, FD_CLOEXEC)
        defer { close(ends[0]) }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
        unsafe posix_spawn_file_actions_addopen(&actions, 1, log.path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        unsafe posix_spawn_file_actions_adddup2(&actions, 1, 2)
        // The program has no part in the pipe: what a shell runs in the background reads nothing (POSIX, shell, 2.9.3.1).
        let script = "\"$@\" & read line; kill -KILL $!; wait"
        let words = unsafe (["/bin/sh", "-c", script, "sh"] + arguments).map { unsafe strdup($0) } + [nil]
        let variables =
            unsafe ProcessInfo.processInfo.environment.merging(environment) { $1 }
            .map { unsafe strdup("\($0.key)=\($0.value)") } + [nil]
        defer { unsafe (words + variables).forEach { unsafe free($0) } }
        var pid: pid_t = 0
        // The threads that run tests have most signals blocked, and a shell that is not told of the end of its child waits for ever.
        var attributes = posix_spawnattr_t()
        unsafe posix_spawnattr_init(&attributes)
        defer { unsafe posix_spawnattr_destroy(&attributes) }
        var none = sigset_t()
        unsafe sigemptyset(&none)
        unsafe posix_spawnattr_setsigmask(&attributes, &none)
        unsafe posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
        let code = unsafe posix_spawn(&pid, "/bin/sh", &actions, &attributes, words, variables)
        guard code == 0 else {
            close(ends[1])
            throw CannotStart(description: "\(arguments[0]) can't be started: \(unsafe String(cString: strerror(code))).")
        }
        return State(shell: pid, pipe: ends[1])
    }

    deinit {
        stop()
    }

    /// Ends the program as a crash would, soon after this returns.
    package func stop() {
        let shell = state.withLock { state -> pid_t? in
            guard let shell = state.shell else { return nil }
            // The line that the shell waits for.
            _ = unsafe write(state.pipe, "\n", 1)
            close(state.pipe)
            state.shell = nil
            return shell
        }
        guard let shell else { return }
        // Waits for the shell, so that nothing is left of it; not here, where the pool's threads may come by.
        _ = try? startThread {
            var status: CInt = 0
            unsafe waitpid(shell, &status, 0)
        }
    }
}
