import Dispatch
import Foundation
import Locking
package import Logging
package import SystemPackage
import TransferCore
import TransferKit
import TransferOutput

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A log file that only its owner can read, rotated when it is full.
package final class RotatingLog: Sendable {
    static let name = "agent.log"
    /// The default size in bytes at which the file is rotated.
    package static let defaultLimit = 1 << 20

    private struct State: Sendable {
        var descriptor: FileDescriptor
        var size: Int
    }

    private let path: FilePath
    private let limit: Int
    private let rotatedFiles: Int
    private let redirectsStandardError: Bool
    private let state: Locked<State>
    private let queue = DispatchQueue(label: "transferq.log")

    /// Creates the file, or appends to an existing one.
    ///
    /// - Parameters:
    ///   - limit: The approximate size in bytes at which the file is rotated.
    ///   - rotatedFiles: The number of rotated files to keep, such as `agent.log.1`.
    ///   - redirectsStandardError: Whether to redirect standard error to the log, so that the log also contains crash reports.
    /// - Throws: A `CommandFailure` if the file can't be opened.
    package init(at path: FilePath, limit: Int = defaultLimit, rotatedFiles: Int = 4, redirectsStandardError: Bool = true) throws {
        self.path = path
        self.limit = limit
        self.rotatedFiles = rotatedFiles
        self.redirectsStandardError = redirectsStandardError
        do {
            state = Locked(try Self.open(path, redirectsStandardError))
        } catch {
            throw CommandFailure(.storage, "Cannot write the log \(path): \(error).")
        }
    }

    /// Opens the log of an agent.
    ///
    /// - Parameters:
    ///   - folder: The storage folder. This method creates a missing folder, because the agent opens the log before the queue.
    ///   - limit: The approximate size in bytes at which the file is rotated.
    /// - Throws: An error if the folder can't be created or the file can't be opened.
    package static func agentLog(in folder: FilePath, limit: Int = defaultLimit) throws -> RotatingLog {
        try StorageFolder.prepare(folder)
        return try RotatingLog(at: folder.appending(name), limit: limit)
    }

    /// A logger that writes to this log.
    package var logger: Logger { Logger(label: "transferq") { _ in FileLogHandler(log: self) } }

    private static func open(_ path: FilePath, _ redirectsStandardError: Bool) throws -> State {
        let descriptor = try StorageFolder.open(path, .writeOnly, options: [.create, .append])
        let size = try descriptor.seek(offset: 0, from: .end)
        if redirectsStandardError { _ = dup2(descriptor.rawValue, STDERR_FILENO) }
        return State(descriptor: descriptor, size: Int(size))
    }

    /// Writes a line asynchronously, in the order of the calls.
    package func post(_ line: String) {
        queue.async { [self] in
            state.withLock { state in
                let text = line + "\n"
                if state.size > 0, state.size + text.utf8.count > limit { rotate(&state) }
                // A full disk must not stop transfers, so the line is lost if it can't be written.
                if let count = try? state.descriptor.writeAll(text.utf8) { state.size += count }
            }
        }
    }

    /// Waits until all posted lines are written.
    package func flush() async {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume() }
        }
    }

    private func rotate(_ state: inout State) {
        let names = [path] + (1...rotatedFiles).map { FilePath("\(path).\($0)") }
        for (old, new) in zip(names, names.dropFirst()).reversed() {
            _ = unsafe old.withPlatformString { old in unsafe new.withPlatformString { unsafe rename(old, $0) } }
        }
        guard let opened = try? Self.open(path, redirectsStandardError) else { return }
        try? state.descriptor.close()
        state = opened
    }
}

struct FileLogHandler: LogHandler {
    let log: RotatingLog
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    init(log: RotatingLog) {
        self.log = log
    }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        let all = metadata.merging(event.metadata ?? [:]) { $1 }
        let details = all.sorted { $0.key < $1.key }.map { " \($0.key)=\($0.value)" }.joined()
        let time = Date().formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        log.post("\(time) \(event.level): \(event.message)\(details)".withoutControlCharacters)
    }
}
