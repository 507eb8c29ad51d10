package import Foundation
import Locking
import ProcessFixture
import SystemPackage
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A program that ends when this object is told to, or goes, or the tests end in whatever way: a shell that waits for the end of a pipe ends it.
package final class GuardedProcess: Sendable {
    private struct State {
        var shell: pid_t?
        let pipe: FileDescriptor
    }

    private let state: Locked<State>

    /// Starts a program, by its absolute path.
    ///
    /// - Parameters:
    ///   - log: Gets all that it says.
    ///   - environment: Variables beside those of the tests.
    package init(_ arguments: [String], log: URL, environment: [String: String] = [:]) throws {
        let stdin = try ChildProcess.pipe()
        defer { try? stdin.reading.close() }
        do {
            let output = try FileDescriptor.open(
                FilePath(log.path), .writeOnly, options: [.create, .append, .closeOnExec], permissions: .ownerReadWrite)
            defer { try? output.close() }
            // The program has no part in the pipe: what a shell runs in the background reads nothing (POSIX, shell, 2.9.3.1).
            let script = "\"$@\" & read line; kill -KILL $!; wait"
            let shell = try ChildProcess.spawn(
                "/bin/sh", (["-c", script, "sh"] + arguments).map { Array($0.utf8) },
                environment: ProcessInfo.processInfo.environment.merging(environment) { $1 },
                descriptors: [stdin.reading, output, output])
            state = Locked(State(shell: shell, pipe: stdin.writing))
        } catch {
            try? stdin.writing.close()
            throw error
        }
    }

    deinit {
        stop()
    }

    /// Ends the program as a crash would, soon after this returns.
    package func stop() {
        let shell = state.withLock { state -> pid_t? in
            guard let shell = state.shell else { return nil }
            // The line that the shell waits for.
            _ = try? state.pipe.writeAll("\n".utf8)
            try? state.pipe.close()
            state.shell = nil
            return shell
        }
        guard let shell else { return }
        // Waits for the shell, so that nothing is left of it; not here, where the pool's threads may come by.
        _ = try? startThread { ChildProcess.reap(shell) }
    }
}
