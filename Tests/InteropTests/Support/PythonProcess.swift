import Foundation
import Glibc
import ScriptedHTTP
import TransferCore

/// A program of the folder Servers, as a process of its own. It prints its port when it listens.
final class PythonProcess {
    struct Missing: Error, CustomStringConvertible {
        var description: String
    }

    let port: Int
    private let process = Process()
    /// The program ends when this is closed, and so also when the tests end in whatever way.
    private let input = Pipe()

    private static let gate = Locked(())

    /// Starts the program, and returns when it listens. Blocks.
    init(_ program: String, _ arguments: [String]) throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let python = tests.deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build/servers/bin/python")
        guard FileManager.default.isExecutableFile(atPath: python.path) else {
            throw Missing(description: "\(python.path) is missing: Tests/run makes it. Run that once.")
        }
        let output = Pipe()
        process.executableURL = python
        process.arguments = [tests.appending(path: "Servers/\(program)").path] + arguments
        process.standardInput = input
        process.standardOutput = output
        // They complain of each connection that breaks.
        process.standardError = FileHandle.nullDevice
        // One at a time: Foundation was seen to crash in the middle of several.
        try Self.gate.withLock { [process] _ in try process.run() }
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        guard let port = Int(line.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw Missing(description: "\(program) did not start. Tests/run installs what it needs.")
        }
        self.port = port
    }

    /// Does something that blocks away from the cooperative pool.
    static func start<Value>(_ body: @escaping @Sendable () throws -> sending Value) async throws -> sending Value {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Ends the process at once, as a crash would.
    func kill() {
        _ = Glibc.kill(process.processIdentifier, SIGKILL)
        process.awaitEnd()
    }

    deinit {
        if process.isRunning { kill() }
    }
}
