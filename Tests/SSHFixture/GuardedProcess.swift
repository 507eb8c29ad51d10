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

/// A program that is killed on request, when this object is released, or when the test process ends. A shell reads a line from a pipe, and then
/// kills the program. The read also returns when the test process closes the pipe or ends.
package final class GuardedProcess: Sendable {
    private struct State {
        var shell: pid_t?
        let pipe: FileDescriptor
    }

    private let state: Locked<State>

    /// Starts a program at an absolute path.
    ///
    /// - Parameters:
    ///   - log: The file to which the program's output is appended.
    ///   - environment: Variables to add to the environment of the test process.
    package init(_ arguments: [String], log: URL, environment: [String: String] = [:]) throws {
        let stdin = try ChildProcess.pipe()
        defer { try? stdin.reading.close() }
        do {
            let output = try FileDescriptor.open(
                FilePath(log.path), .writeOnly, options: [.create, .append, .closeOnExec], permissions: .ownerReadWrite)
            defer { try? output.close() }
            // The program does not inherit the pipe: background commands of a shell read from /dev/null (POSIX, shell, 2.9.3.1).
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

    /// Kills the program and all its descendants, as a power failure would. Blocks.
    package func killTree() {
        // Stops each process, so it can't start other processes during the search for its descendants.
        let family = family { _ = Self.signal($0, SIGSTOP) }
        for process in family { _ = Self.signal(process, SIGKILL) }
        stop()
        // Waits until the processes have ended, because their sockets are closed only then.
        while family.contains(where: { Self.isAlive($0) }) { usleep(2_000) }
    }

    /// Kills the processes with the given name among the program and its descendants. Blocks.
    ///
    /// - Returns: The number of killed processes.
    package func kill(named name: String) -> Int {
        family().count { Self.status(of: $0)?.name == name[...] && Self.signal($0, SIGKILL) }
    }

    /// Returns the program and its descendants, except descendants whose parent has ended.
    ///
    /// - Parameter body: Called for each process as soon as it is found.
    private func family(_ body: (pid_t) -> Void = { _ in }) -> [pid_t] {
        guard let shell = state.withLock({ $0.shell }) else { return [] }
        var family: [pid_t] = []
        while true {
            let found = Self.children(of: [shell] + family).filter { !family.contains($0) }
            guard !found.isEmpty else { return family }
            for process in found { body(process) }
            family += found
        }
    }

    /// Reads `/proc/PID/stat` (proc(5)): the name is in parentheses, and the parent is the second field after the name.
    private static func status(of process: pid_t) -> (name: Substring, state: Substring, parent: pid_t)? {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8), let start = text.firstIndex(of: "("),
            let end = text.lastIndex(of: ")")
        else { return nil }
        let fields = text[text.index(after: end)...].split(separator: " ")
        guard fields.count > 1, let parent = pid_t(fields[1]) else { return nil }
        return (text[text.index(after: start)..<end], fields[0], parent)
    }

    // The method `kill(named:)` hides the system's `kill`.
    private static func signal(_ process: pid_t, _ number: CInt) -> Bool { systemKill(process, number) == 0 }

    private static func isAlive(_ process: pid_t) -> Bool { status(of: process).map { $0.state != "Z" } ?? false }

    private static func children(of parents: [pid_t]) -> [pid_t] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []
        return names.compactMap { pid_t($0) }.filter { status(of: $0).map { parents.contains($0.parent) } ?? false }
    }

    /// Kills the program, which simulates a crash. The program may end shortly after this method returns.
    package func stop() {
        let shell = state.withLock { state -> pid_t? in
            guard let shell = state.shell else { return nil }
            // Sends the line that the shell waits for.
            _ = try? state.pipe.writeAll("\n".utf8)
            try? state.pipe.close()
            state.shell = nil
            return shell
        }
        guard let shell else { return }
        // Reaps the shell, so that no zombie remains. Uses a new thread, because this thread may belong to the cooperative pool.
        _ = try? startThread { ChildProcess.reap(shell) }
    }
}

private func systemKill(_ process: pid_t, _ number: CInt) -> CInt { kill(process, number) }
