public import Foundation
import Locking
public import TransferCore
public import TransferKit

extension RemoteTransferQueue {
    /// Adds a session with one stream to the queue of another process. This process produces the bytes of the stream.
    ///
    /// The queue reads the bytes while the session runs. If this process exits before ``RemoteStreamWriter/finish()`` returns, the item can
    /// fail.
    ///
    /// ```swift
    /// let queue = RemoteTransferQueue(folder: "/var/lib/studio/queue")
    /// let stream = try await queue.enqueueStream(as: "log.txt", .upload(items: [], to: "studio"))
    /// for try await line in lines { try await stream.write(Data(line.utf8)) }
    /// try await stream.finish()
    /// ```
    ///
    /// - Parameters:
    ///   - destination: The remote name of the stream.
    ///   - request: The session to add, without items.
    ///   - length: The length of the stream in bytes; nil if unknown. The item fails if the stream has another length.
    ///   - index: The queue index of the session; nil for the end.
    ///   - held: Whether the session waits until it is released.
    /// - Throws: ``/TransferKit/QueueError`` with the code `invalidRequest` if the request has items, with the codes of
    ///   `TransferQueue.enqueue(_:at:held:)`, or with a code such as `ownerUnreachable`, `ownerLost` or `ownerSilent`.
    public func enqueueStream(
        as destination: some RemotePathConvertible, _ request: SessionRequest, length: Int64? = nil, at index: Int? = nil,
        held: Bool = false
    ) async throws -> RemoteStreamWriter {
        guard request.items.isEmpty else {
            throw QueueError(.invalidRequest, "A session with a stream from another process can't have other items.")
        }
        var staging = RequestStaging()
        try staging.stage([request])
        let name = try destination.remotePath()
        let connection = try await begin(
            .addStream(as: Data(name.bytes), length: length, at: index, held: held), after: staging.parts)
        let response = try await withTaskCancellationHandler {
            try await connection.read(ControlResponse<SessionID>.self)
        } onCancel: {
            connection.interrupt()
        }
        if let error = response.error { throw error }
        let id = response.value ?? request.id
        return RemoteStreamWriter(id, isDuplicate: id != request.id, connection)
    }
}

/// Writes the bytes of a stream to the queue of another process. ``RemoteTransferQueue/enqueueStream(as:_:length:at:held:)`` creates a
/// writer.
///
/// Use a writer from one task at a time. If the writer is released without ``finish()``, the item fails.
public final class RemoteStreamWriter: Sendable {
    /// The ID of the stream's session.
    public let session: SessionID
    /// Whether a session with the request's deduplication key already existed. The existing session has its own content, so writes throw.
    public let isDuplicate: Bool

    private let connection: ControlConnection
    private let isOpen = Locked(true)

    init(_ session: SessionID, isDuplicate: Bool, _ connection: ControlConnection) {
        self.session = session
        self.isDuplicate = isDuplicate
        self.connection = connection
        // The producer may be slow. Heartbeats show the queue's owner that this process is still running.
        connection.sendHeartbeats(while: { [isOpen] in isOpen.withLock { $0 } }, orElse: {})
    }

    deinit {
        isOpen.withLock { $0 = false }
        connection.interrupt()
    }

    /// Appends bytes to the stream, and returns when the queue has accepted the bytes. While the session does not run, this can take until
    /// the session starts or resumes.
    ///
    /// - Parameter bytes: The bytes.
    /// - Throws: ``/TransferKit/QueueError`` if the stream has ended, for example because the session failed or was cancelled, or if the
    ///   queue's owner exited or does not respond; `CancellationError` if the task is cancelled. Each error also ends the stream.
    public func write(_ bytes: some DataProtocol) async throws {
        var rest = (bytes as? Data ?? Data(bytes))[...]
        while !rest.isEmpty {
            try await send(.bytes(rest.prefix(StreamFrame.maximumSize)))
            rest = rest.dropFirst(StreamFrame.maximumSize)
        }
    }

    /// Ends the stream, and waits until all of its bytes are in the storage folder. The session then no longer needs this process. While the
    /// session does not run, this can take until the session starts or resumes. Throws the errors of ``write(_:)``.
    public func finish() async throws {
        try await send(.finish)
        isOpen.withLock { $0 = false }
    }

    /// Ends the stream as incomplete. The item fails, and its error contains the description of the given error. Throws the errors of
    /// ``write(_:)``.
    public func fail(_ error: any Error) async throws {
        try await send(.fail("\(error)"))
        isOpen.withLock { $0 = false }
    }

    private func send(_ frame: StreamFrame) async throws {
        guard !isDuplicate, isOpen.withLock({ $0 }) else {
            throw QueueError(.invalidTransition, "The stream of the session \(session) has ended.")
        }
        try await withTaskCancellationHandler {
            do {
                try await exchange(frame)
            } catch {
                isOpen.withLock { $0 = false }
                // Without this call, the owner would not notice the end of the stream immediately.
                connection.interrupt()
                throw Task.isCancelled ? CancellationError() : error
            }
        } onCancel: {
            connection.interrupt()
        }
    }

    private func exchange(_ frame: StreamFrame) async throws {
        do {
            try await connection.write(data: frame.message)
        } catch {
            // An owner that ends the stream sends the reason before it closes the connection.
            guard error.code == .ownerLost else { throw error }
        }
        let response = try await connection.read(ControlResponse<EmptyResult>.self)
        if let error = response.error { throw error }
    }
}
