import Foundation
import Locking
import ProcessFixture
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A process started by a test, with its output available line by line.
final class RunningCommand: Sendable {
    /// The lines of standard output, for one consumer.
    let lines: AsyncStream<String>
    let processID: pid_t
    private let diagnosticsFile: FilePath

    var diagnostics: String { (try? String(contentsOfFile: diagnosticsFile.string, encoding: .utf8)) ?? "" }

    private struct State: Sendable {
        var end: CommandResult?
        var waiters: [CheckedContinuation<CommandResult, Never>] = []
    }

    private let state = Locked(State())

    /// - Parameters:
    ///   - arguments: The arguments after the program's name, as bytes.
    ///   - input: The content of standard input.
    ///   - output: The descriptor for standard output; nil to collect the output.
    ///   - diagnostics: The descriptor for standard error; nil to collect the diagnostics.
    ///   - scratch: The folder for input and diagnostics, and the default working directory.
    init(
        _ program: FilePath, _ arguments: [[UInt8]], environment: [String: String], input: [UInt8], output terminal: FileDescriptor? = nil,
        diagnostics: FileDescriptor?, scratch: TemporaryFolder, workingFolder: FilePath? = nil
    ) throws {
        let inputFile = try scratch.file(".input-\(UUID().uuidString)", bytes: input)
        diagnosticsFile = try scratch.file(".diagnostics-\(UUID().uuidString)", bytes: [])
        let (stdin, stderr) = (
            try FileDescriptor.open(inputFile, .readOnly, options: .closeOnExec),
            try FileDescriptor.open(diagnosticsFile, .readWrite, options: .closeOnExec)
        )
        let output = try CloseOnExecPipe()
        let spawned = Result {
            try ChildProcess.spawn(
                program, arguments, environment: environment, workingFolder: workingFolder ?? scratch.path,
                descriptors: [stdin, terminal ?? output.writing, diagnostics ?? stderr])
        }
        try stdin.close()
        try output.writing.close()
        processID = try spawned.get()
        let (lines, sink) = AsyncStream.makeStream(of: String.self)
        self.lines = lines
        Thread.detachNewThread { [processID, state, diagnosticsFile] in
            var collector = LineCollector()
            while let received = try? output.read(), !received.isEmpty {
                for line in collector.append(received) { sink.yield(line) }
            }
            sink.finish()
            try? output.reading.close()
            var result = CommandResult(status: 0, wasKilled: false, output: collector.text, diagnostics: "")
            // Waits without reaping the process, so that its ID is not reused and `send(_:)` can't signal an unrelated process.
            ChildProcess.awaitEnd(processID)
            let waiters = state.withLock { state in
                (result.status, result.wasKilled) = ChildProcess.reap(processID)
                result.diagnostics = (try? String(contentsOfFile: diagnosticsFile.string, encoding: .utf8)) ?? ""
                state.end = result
                defer { state.waiters = [] }
                return state.waiters
            }
            try? stderr.close()
            for waiter in waiters { waiter.resume(returning: result) }
        }
    }

    func send(_ signal: Int32) {
        state.withLock { state in
            if state.end == nil { _ = kill(processID, signal) }
        }
    }

    func result() async -> CommandResult {
        await withCheckedContinuation { continuation in
            let end = state.withLock { state in
                if state.end == nil { state.waiters.append(continuation) }
                return state.end
            }
            if let end { continuation.resume(returning: end) }
        }
    }
}

private struct CloseOnExecPipe: Sendable {
    let reading: FileDescriptor
    let writing: FileDescriptor

    init() throws {
        (reading, writing) = try FileDescriptor.pipe()
        for end in [reading, writing] { _ = fcntl(end.rawValue, F_SETFD, FD_CLOEXEC) }
    }

    func read() throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let count = try unsafe bytes.withUnsafeMutableBytes { unsafe try reading.read(into: $0) }
        return Array(bytes.prefix(count))
    }
}

private struct LineCollector {
    private var bytes: [UInt8] = []
    private var delivered = 0

    var text: String { String(decoding: bytes, as: UTF8.self) }

    mutating func append(_ received: [UInt8]) -> [String] {
        bytes += received
        var lines: [String] = []
        while let end = bytes[delivered...].firstIndex(of: UInt8(ascii: "\n")) {
            lines.append(String(decoding: bytes[delivered..<end], as: UTF8.self))
            delivered = end + 1
        }
        return lines
    }
}
