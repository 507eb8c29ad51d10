import Foundation
import ProcessFixture
import SystemPackage

/// A program in the folder Servers, in its own process. It prints its port when it listens.
final class PythonProcess {
    struct Missing: Error, CustomStringConvertible {
        var description: String
    }

    let port: Int
    private let program: StartedProgram

    /// Starts the program, and returns when it listens. Blocks.
    init(_ program: String, _ arguments: [String]) throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        let python = tests.deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build/servers/bin/python")
        guard FileManager.default.isExecutableFile(atPath: python.path) else {
            throw Missing(description: "\(python.path) is missing: Tests/run makes it. Run that once.")
        }
        let errors = FileManager.default.temporaryDirectory.appending(path: "transferkit-\(program)-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: errors) }
        self.program = try StartedProgram(
            python.path, [tests.appending(path: "Servers/\(program)").path] + arguments, errors: FilePath(errors.path))
        guard let port = try self.program.readPort() else {
            let text = (try? String(contentsOf: errors, encoding: .utf8)) ?? ""
            throw Missing(description: "\(program) did not start. Tests/run installs what it needs. It says: \(text)")
        }
        self.port = port
    }

    /// Runs blocking work outside the cooperative pool.
    static func start<Value>(_ body: @escaping @Sendable () throws -> sending Value) async throws -> sending Value {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try body() }) }
        }
    }

    /// Suspends the process: it sees no further events.
    func suspend() {
        program.suspend()
    }

    /// Kills the process, like a crash.
    func kill() {
        program.kill()
    }
}
