import Foundation
import SystemPackage

/// A program from the folder `InteropTests/Servers`, in a separate process. The program prints its port once it accepts connections.
package final class PythonProcess {
    package struct Missing: Error, CustomStringConvertible {
        package var description: String
    }

    package let port: Int
    private let program: StartedProgram

    /// Starts the program, and returns once it accepts connections. Blocks.
    package init(_ program: String, _ arguments: [String]) throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let python = tests.deletingLastPathComponent().appending(path: ".build/servers/bin/python")
        guard FileManager.default.isExecutableFile(atPath: python.path) else {
            throw Missing(description: "\(python.path) is missing. Run Tests/run once to install it.")
        }
        let errors = FileManager.default.temporaryDirectory.appending(path: "transferkit-\(program)-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: errors) }
        self.program = try StartedProgram(
            python.path, [tests.appending(path: "InteropTests/Servers/\(program)").path] + arguments, errors: FilePath(errors.path))
        guard let port = try self.program.readPort() else {
            let text = (try? String(contentsOf: errors, encoding: .utf8)) ?? ""
            throw Missing(description: "\(program) did not start. Tests/run installs its requirements. Its output: \(text)")
        }
        self.port = port
    }

    /// Runs blocking work outside the cooperative pool.
    package static func runBlocking<Value>(_ body: @escaping @Sendable () throws -> sending Value) async throws -> sending Value {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Suspends the process, so that it stops responding.
    package func suspend() {
        program.suspend()
    }

    /// Kills the process, which simulates a crash.
    package func kill() {
        program.kill()
    }
}
