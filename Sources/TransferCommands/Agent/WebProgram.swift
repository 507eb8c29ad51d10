import Foundation
import Locking
import Logging
import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The web server of an agent: the program `transferq-web`. The agent restarts the program when it ends.
final class WebProgram: Sendable {
    /// The first and the longest delay before a restart. Each delay is twice the previous one, up to the longest delay. After a run that lasted
    /// longer than the longest delay, the delays begin again with the first one.
    private static let delays = (first: Duration.seconds(1), longest: Duration.seconds(60))

    /// The path of the program, next to this program.
    static var path: FilePath { AgentLaunch.executable.removingLastComponent().appending("transferq-web") }

    private let arguments: [[UInt8]]
    private let logger: Logger
    /// The maximum time from the end of the program's input to its exit. A program that hangs must not keep the agent from stopping.
    private static let exitTimeout = Duration.seconds(3)

    private struct State {
        var isStopping = false
        /// The write end of the pipe to the program's standard input; nil if the program is not running.
        var input: FileDescriptor?
        /// The ID of the program's process; nil if the program is not running. The process has not been reaped, so no other process has this ID.
        var process: pid_t?
    }

    private let state = Locked(State())

    /// - Parameters:
    ///   - folder: The storage folder.
    ///   - address: The address and the port to listen on; nil for the program's default.
    init(_ folder: FilePath, address: String?, logger: Logger) {
        arguments =
            [Array("--store".utf8), folder.bytes, Array("--ends-with-input".utf8)]
            + (address.map { [Array("--listen".utf8), Array($0.utf8)] } ?? [])
        self.logger = logger
    }

    /// Runs the program until ``stop()``. Returns when the program has ended.
    func run() async {
        var delay = Self.delays.first
        while true {
            let start = ContinuousClock.now
            let failure = await BlockingIO.run { [self] in runOnce() }
            guard !state.withLock({ $0.isStopping }) else { return }
            if ContinuousClock.now - start > Self.delays.longest { delay = Self.delays.first }
            logger.error("The web server has ended: \(failure). Starting it again in \(delay.components.seconds) s.")
            try? await Task.sleep(for: delay)
            guard !state.withLock({ $0.isStopping }) else { return }
            delay = min(delay * 2, Self.delays.longest)
        }
    }

    /// Ends the program, if necessary with SIGKILL. The caller must also cancel the task of ``run()``, which may be waiting to restart the program.
    func stop() {
        state.withLock { state in
            state.isStopping = true
            try? state.input?.close()
            state.input = nil
        }
        Task { [state] in
            try await Task.sleep(for: Self.exitTimeout)
            state.withLock { state in
                if let process = state.process { kill(process, SIGKILL) }
            }
        }
    }

    /// Returns how the program ended. Blocks.
    private func runOnce() -> String {
        do {
            let stdout = try FileDescriptor.pipe()
            defer { try? stdout.readEnd.close() }
            let stdin: (readEnd: FileDescriptor, writeEnd: FileDescriptor)
            do {
                stdin = try FileDescriptor.pipe()
            } catch {
                try? stdout.writeEnd.close()
                throw error
            }
            let process: pid_t
            do {
                defer { for end in [stdin.readEnd, stdout.writeEnd] { try? end.close() } }
                process = try ChildProgram.start(
                    Self.path, arguments, descriptors: [0: .descriptor(stdin.readEnd), 1: .descriptor(stdout.writeEnd)])
            } catch {
                try? stdin.writeEnd.close()
                return "cannot start \(Self.path): \(error)"
            }
            let isStopping = state.withLock { state in
                state.process = process
                if !state.isStopping { state.input = stdin.writeEnd }
                return state.isStopping
            }
            if isStopping { try? stdin.writeEnd.close() }
            logAddress(stdout.readEnd)
            ChildProgram.waitForEnd(of: process)
            // Forget the process ID before the program is reaped, because another process can get the ID afterwards.
            let failure = state.withLock { state in
                try? state.input?.close()
                (state.input, state.process) = (nil, nil)
                return ChildProgram.failure(of: process)
            }
            return failure ?? "its exit status was 0"
        } catch {
            return "cannot create a pipe: \(error)"
        }
    }

    /// Waits for the URL that the program prints, and logs the URL without the token. Logs nothing if the program ends first. Blocks.
    private func logAddress(_ output: FileDescriptor) {
        var bytes = [UInt8](repeating: 0, count: 4_096)
        let count = (try? unsafe bytes.withUnsafeMutableBytes { unsafe try output.read(into: $0) }) ?? 0
        let text = String(decoding: bytes.prefix(count), as: UTF8.self)
        guard let url = text.split(separator: "login?").first, count > 0 else { return }
        logger.notice("The page is at \(url). Its token is in web.token in the storage folder.")
    }
}
