/// Serves one connection on a thread of its own, request after request.
struct ConnectionLoop {
    let connection: Connection
    let handler: RequestHandler

    /// A refused body up to this size is read so that the connection can go on; for a longer one it ends.
    private static let drainedSize: Int64 = 1024 * 1024

    func run() {
        let reader = RequestReader(connection, handler.order)
        do {
            while let head = try reader.nextHead() {
                let body = try RequestBody(of: head, from: reader)
                guard let response = handler.answer(head, body, on: connection) else { break }
                handler.order.set(.handling, for: connection.number)
                guard try send(response, to: head, body) else { break }
            }
        } catch .malformed(let reason) {
            try? connection.send(Response(400, body: reason + "\n").encoded(forHead: false, closing: true))
        } catch {}
        connection.close()
        handler.order.leave(connection.number)
    }

    /// Sends an answer and throws away what is left of the body.
    ///
    /// - Returns: Whether the connection can go on.
    private func send(_ response: Response, to head: RequestHead, _ body: RequestBody) throws(ConnectionFailure) -> Bool {
        let isKept = head.isKeptAlive && !body.isAwaited && !connection.isReadingInterrupted && isShort(body)
        try connection.send(response.encoded(forHead: head.method == "HEAD", closing: !isKept))
        guard !body.isAtEnd else { return isKept }
        if body.isAwaited { return false }
        if !isKept { connection.endWriting() }
        // Closing with unread bytes would reset the connection, and the other end might never see the answer (RFC 9112, section 9.6).
        while let piece = try body.next() { handler.recorder.discarded(Int64(piece.count)) }
        return isKept
    }

    private func isShort(_ body: RequestBody) -> Bool {
        if case .known(let bytes) = body.length { return body.isAtEnd || bytes <= Self.drainedSize }
        return body.isAtEnd
    }
}
