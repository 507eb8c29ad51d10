import Foundation

extension ControllableQueue {
    /// Decodes the context of the session that an event concerns: the value that the app passed as ``SessionRequest/context``.
    ///
    /// The events of a running session contain its context, so this method returns the context even if the session has been removed since
    /// the event. For other events, and in a process that does not own the queue, this method reads the session's current context.
    ///
    /// ```swift
    /// func queue(_ queue: TransferQueue, didReceive event: QueueEvent) async {
    ///     guard case .completed = event.kind, let ticket = try? await queue.context(of: event, as: Ticket.self) else { return }
    ///     print("ticket \(ticket.id) is done")
    /// }
    /// ```
    ///
    /// - Returns: nil if the event concerns no session or several sessions, if the session has no context, or if the event does not contain the
    ///   context and the session no longer exists. For an event that concerns several sessions, call ``contexts(of:as:)``.
    /// - Throws: ``QueueError`` if the database can't be read, or `DecodingError` if the context has another type.
    public func context<Value: Decodable>(of event: QueueEvent, as type: Value.Type) async throws -> Value? {
        if let context = event.context { return try JSONDecoder().decode(type, from: context) }
        guard let id = event.session else { return nil }
        return try await context(of: id, as: type)
    }

    /// Decodes the contexts of all sessions that an event concerns, such as the sessions of ``QueueEvent/Kind/added(_:index:)``.
    ///
    /// - Returns: The values by session, without the sessions that have no context or no longer exist.
    /// - Throws: ``QueueError`` if the database can't be read, or `DecodingError` if a context has another type.
    public func contexts<Value: Decodable>(of event: QueueEvent, as type: Value.Type) async throws -> [SessionID: Value] {
        if let id = event.session {
            guard let context = try await context(of: event, as: type) else { return [:] }
            return [id: context]
        }
        guard !event.sessions.isEmpty else { return [:] }
        return try await sessions(in: .sessions(event.sessions)).reduce(into: [:]) { $0[$1.id] = try $1.context(as: type) }
    }

    /// Decodes the current context of a session, for example in ``TransferQueueDelegate/queue(_:endpointFor:among:)``.
    ///
    /// - Returns: nil if the session has no context or was removed.
    /// - Throws: ``QueueError`` if the database can't be read, or `DecodingError` if the context has another type.
    public func context<Value: Decodable>(of id: SessionID, as type: Value.Type) async throws -> Value? {
        do {
            return try await status(of: id).context(as: type)
        } catch let error as QueueError where error.code == .noSuchSession {
            return nil
        }
    }
}

extension SessionStatus {
    /// Decodes ``context``; nil if the session has none.
    ///
    /// - Throws: `DecodingError` if the context has another type.
    public func context<Value: Decodable>(as type: Value.Type) throws -> Value? {
        try context.map { try JSONDecoder().decode(type, from: $0) }
    }
}
