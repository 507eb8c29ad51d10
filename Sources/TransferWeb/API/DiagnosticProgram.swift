import Foundation
import Locking
import SystemPackage
import TransferKit
import TransferOutput

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs the commands of `transferq` that check accounts and the storage folder. These commands need transports, which the web server itself lacks.
struct DiagnosticProgram: Sendable {
    /// The time to wait for each endpoint, in seconds.
    private static let timeout = "20"
    /// The time after which the server kills the command. Otherwise, a command that hangs, for example on a network share, would block
    /// later checks.
    private static let limit = Duration.seconds(120)

    /// The path of `transferq`; nil if this server can't run it.
    let path: FilePath?
    let folder: FilePath
    /// Whether a command is running. Only one can run at a time, because each is a process with its own connections.
    private let isRunning = Locked(false)

    init(_ path: FilePath?, folder: FilePath) {
        self.path = path
        self.folder = folder
    }

    /// Runs a command, and returns a response with its findings (the results of its checks).
    ///
    /// - Parameters:
    ///   - command: The words of the command, without options.
    ///   - account: The account to check; nil if the command checks everything.
    /// - Throws: A ``Problem`` if the server has no program, another command is running, or the command ends with an error instead of
    ///   findings. The system's error if the program can't be started.
    func findings(_ command: [String], of account: String? = nil) async throws -> WebResponse {
        guard let path else {
            throw Problem(
                503, "noDiagnostics", "This server can't check accounts or the storage folder. Use transferq account check on its host.")
        }
        let mayRun = isRunning.withLock { isRunning in
            defer { isRunning = true }
            return !isRunning
        }
        guard mayRun else { throw Problem(429, "busy", "Another check is still running. Repeat the request when it has ended.") }
        defer { isRunning.withLock { $0 = false } }
        let process = Process()
        process.executableURL = URL(filePath: path.string)
        process.arguments = command + ["--json", "--store", folder.string, "--timeout", Self.timeout] + (account.map { ["--", $0] } ?? [])
        // With this variable, the program would check a fleet instead of this queue.
        process.environment = ProcessInfo.processInfo.environment.filter { $0.key != "TRANSFERQ_FLEET" }
        process.standardInput = FileHandle.nullDevice
        let output = Pipe()
        // Each finding is a line of JSON. All other lines are messages.
        (process.standardOutput, process.standardError) = (output, output)
        try process.run()
        let end = Task { [number = process.processIdentifier] in
            try await Task.sleep(for: Self.limit)
            kill(number, SIGKILL)
        }
        defer { end.cancel() }
        let text = await BlockingIO.run { String(decoding: (try? output.fileHandleForReading.readToEnd()) ?? Data(), as: UTF8.self) }
        let lines = text.split(separator: "\n")
        let findings = lines.compactMap { try? JSONDecoder().decode(JSONValue.self, from: Data($0.utf8)) }
        guard !findings.isEmpty else {
            throw Problem(503, "noDiagnostics", lines.last.map(String.init) ?? "\(path) ended without a result.")
        }
        return WebResponse(["findings": .array(findings)])
    }
}
