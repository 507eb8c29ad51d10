import TransferCore
import TransferKit

extension ControlClient {
    /// Adds a session with one stream, and passes the client's bytes to the queue until the client ends the stream or disconnects.
    ///
    /// Responds to each frame after the queue has accepted its bytes, so the client sends no faster than the queue reads. Responds to
    /// ``StreamFrame/finish`` after the whole stream is in the storage folder.
    func receiveStream(as name: RemotePath, length: Int64?, of requests: [SessionRequest], at index: Int?, held: Bool) async throws {
        guard var request = requests.first, requests.count == 1 else {
            throw QueueError(.invalidMessage, "A stream needs exactly one session.")
        }
        let (item, writer) = TransferItem.stream(as: name, length: length)
        request.items = [item]
        let id = try await queue.add([request], at: index, held: held).first ?? request.id
        try await send(id)
        // The request duplicates an existing session, which has its own content.
        guard id == request.id else { return }
        do {
            while true {
                switch try await nextFrame() {
                case .bytes(let data):
                    try await writer.write(data)
                    try await send(EmptyResult())
                case .finish:
                    writer.finish()
                    try await writer.flush()
                    try await send(EmptyResult())
                    return await waitForClient(of: id)
                case .fail(let reason):
                    writer.fail(StreamFailure(reason: reason))
                    return try await send(EmptyResult())
                }
            }
        } catch let error as QueueError where error.code == .ownerLost {
            // `ownerLost` is named from the point of view of a client. Here, the code means that the client has disconnected.
            writer.fail(StreamFailure(reason: "the process that produced it exited."))
            throw error
        } catch {
            writer.fail(error)
            throw error
        }
    }

    /// The maximum time that a client stays connected after the session of its completed stream has ended.
    private static let endDelay = Duration.seconds(10)

    /// Waits until the client disconnects. A client can stay connected to wait for the end of its session. Until the client disconnects,
    /// ``ControlServer/hasStreams`` is true, so that the queue's owner can wait for the client before the owner exits.
    private func waitForClient(of id: SessionID) async {
        let timer = Task { [queue, connection] in
            _ = try? await queue.session(id).value
            guard (try? await Task.sleep(for: Self.endDelay)) != nil else { return }
            connection.interrupt()
        }
        defer { timer.cancel() }
        while true {
            do { _ = try await connection.readData() } catch { guard error.code == .ownerSilent else { return } }
        }
    }

    /// Receives the next frame. Waits as long as the client is connected, because the client may be suspended.
    private func nextFrame() async throws(QueueError) -> StreamFrame {
        while true {
            do {
                return try StreamFrame(message: await connection.readData())
            } catch {
                guard error.code == .ownerSilent else { throw error }
            }
        }
    }
}

/// The reason why a client could not complete its stream. Its description becomes part of the item's error.
private struct StreamFailure: Error, CustomStringConvertible {
    let reason: String

    var description: String { reason }
}
