import Foundation
import ProcessFixture

/// The receiver of the samples, `Samples/receiver.py`, which stores files that arrive by PUT and in forms.
final class Receiver: Sendable {
    /// The address without its scheme, such as `127.0.0.1:8080/`.
    let address: String
    /// The folder of received files.
    let files: URL
    private let program: StartedProgram

    struct Ended: Error {}

    /// Starts the receiver, and returns once it accepts connections.
    static func start(in folder: SampleFolder) async throws -> Receiver {
        try await withCheckedThrowingContinuation { continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try Receiver(folder.url.appending(path: "received")) }) }
        }
    }

    private init(_ files: URL) throws {
        self.files = files
        let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        // From a shell, the program runs until it is interrupted. Here, it must end even if the test process crashes.
        let script = """
            import runpy, sys
            _, servers, *sys.argv = sys.argv
            sys.path.insert(0, servers)
            import test_process
            test_process.end_with_tests()
            runpy.run_path(sys.argv[0], run_name="__main__")
            """
        let servers = root.appending(path: "Tests/InteropTests/Servers").path
        program = try StartedProgram(
            "python3", ["-c", script, servers, root.appending(path: "Samples/receiver.py").path, files.path])
        let line = try Self.line(of: program)
        address = line.replacing("listening on http://", with: "")
    }

    func nextLine() async throws -> String {
        try await withCheckedThrowingContinuation { [program] continuation in
            Thread.detachNewThread { continuation.resume(with: Result { try Self.line(of: program) }) }
        }
    }

    private static func line(of program: StartedProgram) throws -> String {
        var line = Data()
        // Python can write the line and its end separately.
        while line.last != UInt8(ascii: "\n") {
            let received = try program.read()
            guard !received.isEmpty else { throw Ended() }
            line += received
        }
        return String(decoding: line.dropLast(), as: UTF8.self)
    }
}
