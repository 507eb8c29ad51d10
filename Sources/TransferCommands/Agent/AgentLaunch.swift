import Foundation
package import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Starts this program as an agent in a new process.
package enum AgentLaunch {
    /// Starts an agent that logs to the storage folder, and returns when the agent is ready. Does not block the cooperative pool.
    ///
    /// - Parameter arguments: The arguments after the program's name.
    /// - Throws: A `CommandFailure` if the agent failed to start.
    package static func start(_ arguments: [String], loggingIn folder: FilePath) async throws {
        let log = folder.appending(RotatingLog.name)
        _ = try await BlockingIO.run { () throws(CommandFailure) in try launch(arguments.map { Array($0.utf8) }, log: log) }
    }

    /// Starts the agent and waits until it is ready or has failed. Blocks.
    ///
    /// - Parameters:
    ///   - arguments: The arguments after the program's name, without `--ready-descriptor`.
    ///   - log: The agent's log file, for error messages.
    /// - Returns: The agent's process ID.
    /// - Throws: A `CommandFailure` if the agent failed to start. The failure contains the reason and the exit status that the agent reported, if
    ///   any.
    static func launch(_ arguments: [[UInt8]], log: FilePath) throws(CommandFailure) -> pid_t {
        do {
            let (reading, writing) = try FileDescriptor.pipe()
            defer { try? reading.close() }
            let process: pid_t
            do {
                defer { try? writing.close() }
                process = try ChildProgram.start(
                    executable, arguments + [Array("--ready-descriptor".utf8), Array("\(readyDescriptor)".utf8)],
                    descriptors: [0: .null, 1: .null, 2: .null, readyDescriptor: .descriptor(writing)],
                    variable: "\(CrashReports.variable.name)=\(CrashReports.variable.value)")
            }
            let text = try readToEnd(reading)
            guard let report = try? JSONDecoder().decode(StartReporter.StartResult.self, from: text) else {
                throw CommandFailure(.storage, "The agent exited before it was ready. See \(log).")
            }
            guard let status = report.status else { return process }
            throw CommandFailure(ExitStatus(rawValue: status) ?? .storage, report.message ?? "Cannot start the agent. See \(log).")
        } catch let failure as CommandFailure {
            throw failure
        } catch {
            throw CommandFailure(.storage, "Cannot start the agent: \(error).")
        }
    }

    /// The first descriptor after the standard streams.
    private static let readyDescriptor: CInt = 3

    private static func readToEnd(_ descriptor: FileDescriptor) throws -> Data {
        var data = Data()
        var bytes = [UInt8](repeating: 0, count: 4_096)
        while true {
            let count = try unsafe bytes.withUnsafeMutableBytes { unsafe try descriptor.read(into: $0) }
            if count == 0 { return data }
            data += bytes.prefix(count)
        }
    }

    static var executable: FilePath {
        Bundle.main.executablePath.map { FilePath($0) } ?? FilePath(bytes: ProcessArguments.words.first ?? Array("transferq".utf8))
    }
}
