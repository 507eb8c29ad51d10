public import TransferKit

/// The operations of `TransferQueue` on one session, for any queue.
extension ControllableQueue {
    /// Runs a session now.
    public func run(_ id: SessionID, again: Bool = false) async throws { try await apply(.run(again: again), to: .id(id)) }
    /// Makes a session the next to start.
    public func runNext(_ id: SessionID) async throws { try await apply(.runNext, to: .id(id)) }
    /// Pauses a session, which keeps its slot. A waiting session is held instead.
    ///
    /// - Returns: The new state.
    @discardableResult
    public func pause(_ id: SessionID) async throws -> SessionState { try await apply(.pause, to: .id(id)) ?? .paused }
    /// Resumes a paused session.
    public func resume(_ id: SessionID) async throws { try await apply(.resume, to: .id(id)) }
    /// Holds a session until it is released.
    public func hold(_ id: SessionID) async throws { try await apply(.hold, to: .id(id)) }
    /// Releases a held session, which waits for its turn again.
    public func release(_ id: SessionID) async throws { try await apply(.release, to: .id(id)) }
    /// Interrupts a session to give its slot to another one.
    public func stop(_ id: SessionID) async throws { try await apply(.stop, to: .id(id)) }
    /// Cancels a session.
    public func cancel(_ id: SessionID, keepsPartial: Bool = false) async throws {
        try await apply(.cancel(keepsPartial: keepsPartial), to: .id(id))
    }
    /// Retries a failed or cancelled session.
    public func retry(_ id: SessionID) async throws { try await apply(.retry, to: .id(id)) }
    /// Removes a session in any state.
    public func remove(_ id: SessionID, isForced: Bool = false) async throws { try await apply(.remove(isForced: isForced), to: .id(id)) }
    /// Moves a session.
    public func move(_ id: SessionID, to destination: MoveDestination) async throws { try await apply(.move(to: destination), to: .id(id)) }
    /// Changes the settings in the update.
    public func update(_ id: SessionID, _ update: SessionUpdate) async throws { try await apply(.update(update), to: .id(id)) }

    /// Reads the sessions in order, in pages, until the body returns false.
    ///
    /// Sessions that are added, removed or moved during the iteration may be missing or occur twice.
    public func forEachSession(_ body: (SessionStatus) async throws -> Bool) async throws {
        let (page, ahead) = (2_048, 2)
        try await withThrowingTaskGroup(of: (start: Int, sessions: [SessionStatus]).self) { group in
            var nextStart = 0
            func readNext() {
                let start = nextStart
                nextStart += page
                group.addTask { (start, try await sessions(start..<start + page)) }
            }
            readNext()
            var read: [Int: [SessionStatus]] = [:]
            var start = 0
            while true {
                while read[start] == nil, let result = try await group.next() { read[result.start] = result.sessions }
                guard let present = read.removeValue(forKey: start), !present.isEmpty else { break }
                start += page
                // Reads the next pages while the body handles this one.
                while present.count == page, nextStart < start + ahead * page { readNext() }
                for session in present {
                    guard try await body(session) else { return group.cancelAll() }
                }
            }
            group.cancelAll()
        }
    }
}
