import Dispatch
import Foundation
import Locking
import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The bytes of a stream: standard input, or the output of a command.
final class ProducerInput: Sendable {
    private static let bufferSize = 256 * 1024
    /// The interval, in milliseconds, at which a read checks whether its task was cancelled.
    private static let pollInterval: CInt = 200

    private let descriptor: FileDescriptor
    private let command: ProducerCommand?
    /// Reads block, so they run on a separate dispatch queue.
    private let queue = DispatchQueue(label: "transferq.input")

    /// - Parameter command: The command whose output is sent; nil for standard input.
    init(_ command: ProducerCommand?) {
        self.command = command
        descriptor = command?.output ?? .standardInput
    }

    func start() throws(CommandFailure) { try command?.start() }

    /// Returns the next bytes, at least one; nil at the end of the input.
    ///
    /// - Throws: `CancellationError`, or an `Errno` if the input can't be read.
    func next() async throws -> Data? {
        let isCancelled = Locked(false)
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                queue.async { continuation.resume(with: Result { try self.read { isCancelled.withLock { $0 } } }) }
            }
        } onCancel: {
            isCancelled.withLock { $0 = true }
        }
    }

    /// Waits until the command exits. Call this method after the end of the input.
    ///
    /// - Throws: A `CommandFailure` if the command failed, so that its output may be incomplete.
    func checkEnd() async throws { try await command?.waitUntilExit() }

    func cancel() { command?.terminate() }

    private func read(_ isCancelled: () -> Bool) throws -> Data? {
        var poll = pollfd(fd: descriptor.rawValue, events: Int16(POLLIN), revents: 0)
        while true {
            guard !isCancelled() else { throw CancellationError() }
            let count = unsafe Self.poll(&poll, 1, Self.pollInterval)
            if count > 0 { break }
            guard count == 0 || errno == EINTR else { throw Errno(rawValue: errno) }
        }
        var buffer = Data(count: Self.bufferSize)
        let count = try unsafe buffer.withUnsafeMutableBytes { unsafe try descriptor.read(into: $0) }
        return count == 0 ? nil : buffer.prefix(count)
    }

    private static func poll(_ descriptors: UnsafeMutablePointer<pollfd>, _ count: nfds_t, _ timeout: CInt) -> CInt {
        #if canImport(Glibc)
            unsafe Glibc.poll(descriptors, count, timeout)
        #else
            unsafe Darwin.poll(descriptors, count, timeout)
        #endif
    }
}
