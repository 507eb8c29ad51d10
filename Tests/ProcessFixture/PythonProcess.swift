import Foundation
import ProcessFixture
import SystemPackage

/// A program from the folder Servers, in a separate process. The program prints its port once it accepts connections.
final class PythonProcess {
    struct Missing: Error, CustomStringConvertible {
        var description: String
    }

    let port: Int
    private let program: StartedProgram

    /// Starts the program, and returns once it accepts connections. Blocks.
    init(_ program: String, _ arguments: [String]) throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let python = tests.deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build/servers/bin/python")
        guard FileManager.default.isExecutableFile(atPath: python.path) else {
            throw Missing(description: "\(python.path) is missing. Run Tests/run once to install it.")
        }
        let errors = FileManager.default.temporaryDirectory.appending(path: "transferkit-\(program)-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: errors) }
        self.program = try StartedProgram(
            python.path, [tests.appending(path: "Servers/\(program)").path] + arguments, errors: FilePath(errors.path))
        guard let port = try self.program.readPort() else {
            let text = (try? String(contentsOf: errors, encoding: .utf8)) ?? ""
            throw Missing(description: "\(program) did not start. Tests/run installs its requirements. Its output: \(text)")
        }
        self.port = port
    }

    /// Runs blocking work outside the cooperative pool.
    static func runBlocking<Value>(_ body: @escaping @Sendable () throws -> sending Value) async throws -> sending Value {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Suspends the process, so that it stops responding.
    func suspend() {
        program.suspend()
    }

    /// Kills the process, which simulates a crash.
    func kill() {
        program.kill()
    }
}
