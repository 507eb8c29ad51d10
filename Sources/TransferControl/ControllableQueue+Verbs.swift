public import TransferKit

/// The verbs of `TransferQueue`, by identity, for any queue.
extension ControllableQueue {
    /// Runs a session now.
    public func run(_ id: SessionID, again: Bool = false) async throws { try await apply(.run(again: again), to: .id(id)) }
    /// Lets a session be the next that starts.
    public func runNext(_ id: SessionID) async throws { try await apply(.runNext, to: .id(id)) }
    /// Interrupts a session, with its slot kept; a waiting one is held instead.
    ///
    /// - Returns: The state that it gets.
    @discardableResult
    public func pause(_ id: SessionID) async throws -> SessionState { try await apply(.pause, to: .id(id)) ?? .paused }
    /// Lets a paused session go on.
    public func resume(_ id: SessionID) async throws { try await apply(.resume, to: .id(id)) }
    /// Sets a session aside.
    public func hold(_ id: SessionID) async throws { try await apply(.hold, to: .id(id)) }
    /// Lets a held session wait for its turn again.
    public func release(_ id: SessionID) async throws { try await apply(.release, to: .id(id)) }
    /// Takes a session's slot for another one.
    public func stop(_ id: SessionID) async throws { try await apply(.stop, to: .id(id)) }
    /// Ends a session.
    public func cancel(_ id: SessionID, keepsPartial: Bool = false) async throws {
        try await apply(.cancel(keepsPartial: keepsPartial), to: .id(id))
    }
    /// Lets a failed or cancelled session wait again.
    public func retry(_ id: SessionID) async throws { try await apply(.retry, to: .id(id)) }
    /// Removes a session in any state.
    public func remove(_ id: SessionID, isForced: Bool = false) async throws { try await apply(.remove(isForced: isForced), to: .id(id)) }
    /// Moves a session.
    public func move(_ id: SessionID, to destination: MoveDestination) async throws { try await apply(.move(to: destination), to: .id(id)) }
    /// Changes what the update names.
    public func update(_ id: SessionID, _ update: SessionUpdate) async throws { try await apply(.update(update), to: .id(id)) }

    /// Reads the sessions in order, a page at a time, until the body returns false.
    ///
    /// What is added, removed or moved meanwhile may be left out, or come twice.
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
                // The next ones are read while this one is worked on.
                while present.count == page, nextStart < start + ahead * page { readNext() }
                for session in present {
                    guard try await body(session) else { return group.cancelAll() }
                }
            }
            group.cancelAll()
        }
    }
}
