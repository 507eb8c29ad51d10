package import Foundation
import Locking
package import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A program that runs alongside the tests. Its standard input stays open while this object exists, so a program that exits at the end of
/// its input also exits when the test process ends.
package final class StartedProgram: Sendable {
    private let input: Locked<FileDescriptor?>
    private let output: FileDescriptor
    private let process: Locked<pid_t?>

    /// Starts a program, by its absolute path or by its name in the search path.
    ///
    /// - Parameters:
    ///   - environment: Variables to add to the environment of the test process.
    ///   - errors: The file for the program's standard error. Overwrites an existing file.
    package init(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], errors: FilePath = "/dev/null"
    ) throws {
        let (stdin, stdout) = (try ChildProcess.pipe(), try ChildProcess.pipe())
        defer { for end in [stdin.reading, stdout.writing] { try? end.close() } }
        let stderr = try FileDescriptor.open(
            errors, .writeOnly, options: [.create, .truncate, .closeOnExec], permissions: .ownerReadWrite)
        defer { try? stderr.close() }
        (input, output) = (Locked(stdin.writing), stdout.reading)
        let isPath = program.hasPrefix("/")
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process = Locked(
            try ChildProcess.spawn(
                isPath ? FilePath(program) : "/usr/bin/env", ((isPath ? [] : [program]) + arguments).map { Array($0.utf8) },
                environment: variables, descriptors: [stdin.reading, stdout.writing, stderr]))
    }

    /// Returns the output since the last call: at least one byte, or no bytes at the end of the output. Blocks.
    package func read() throws -> Data {
        var buffer = [UInt8](repeating: 0, count: 64 * 1024)
        let count = try unsafe buffer.withUnsafeMutableBytes { unsafe try output.read(into: $0) }
        return Data(buffer.prefix(count))
    }

    /// Reads the port number that the program prints once it accepts connections. Returns nil if the program prints something else. Blocks.
    package func readPort() throws -> Int? {
        Int(String(decoding: try read(), as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    }

    /// Kills the process, which simulates a crash. Blocks until the process has ended.
    package func kill() {
        process.withLock { process in
            guard let number = process else { return }
            Self.send(SIGKILL, to: number)
            ChildProcess.reap(number)
            process = nil
        }
    }

    /// Suspends the process, so that it stops responding. It can still be killed.
    package func suspend() { send(SIGSTOP) }

    /// Sends a signal, unless the process was reaped.
    package func send(_ signal: CInt) {
        process.withLock { process in
            if let number = process { Self.send(signal, to: number) }
        }
    }

    /// Waits until the process ends, and reaps it. Blocks.
    ///
    /// - Returns: The exit status, or the signal that killed the process; nil if the process was already reaped, for example by ``kill()``.
    package func waitForEnd() -> (status: Int32, wasKilled: Bool)? {
        // Waits without the lock, so that `kill()` can end the process.
        if let number = process.withLock({ $0 }) { ChildProcess.awaitEnd(number) }
        return process.withLock { process in
            defer { process = nil }
            return process.map { ChildProcess.reap($0) }
        }
    }

    private static func send(_ signal: CInt, to number: pid_t) {
        #if canImport(Glibc)
            _ = Glibc.kill(number, signal)
        #else
            _ = Darwin.kill(number, signal)
        #endif
    }

    /// Writes to the standard input. Blocks while the pipe is full.
    package func write(_ text: String) throws {
        try input.withLock { _ = try $0?.writeAll(text.utf8) }
    }

    /// Ends the standard input.
    package func closeInput() {
        input.withLock { input in
            try? input?.close()
            input = nil
        }
    }

    deinit {
        kill()
        closeInput()
        try? output.close()
    }

    /// Runs a program until it exits. Blocks.
    ///
    /// - Parameter input: The standard input. It must fit into a pipe's buffer.
    /// - Returns: The exit status, or the number of the signal that killed the program, and its output.
    @discardableResult package static func run(
        _ program: String, _ arguments: [String], environment: [String: String] = [:], input: Data = Data()
    ) throws -> (status: Int32, output: Data) {
        let program = try StartedProgram(program, arguments, environment: environment)
        try program.input.withLock { _ = try $0?.writeAll(input) }
        program.closeInput()
        var output = Data()
        while case let received = try program.read(), !received.isEmpty { output += received }
        let status = program.process.withLock { process in
            defer { process = nil }
            return process.map { ChildProcess.reap($0).status } ?? 0
        }
        return (status, output)
    }
}
