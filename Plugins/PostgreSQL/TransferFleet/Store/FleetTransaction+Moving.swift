package import TransferKit

extension FleetTransaction {
    /// Moves a session. Changes only the row of this session, unless there is no gap at the destination.
    package func move(_ id: SessionID, to destination: MoveDestination) throws {
        guard try index(of: id) != nil else { throw QueueError(.noSuchSession, "There is no session \(id).") }
        _ = try move([id], to: destination)
    }

    /// Moves sessions to consecutive indices, in the given order. Ignores sessions that do not exist.
    ///
    /// - Returns: The given sessions whose position in the order changed.
    /// - Throws: ``QueueError`` with the code `staleOrder`, `indexOutOfRange` or `noSuchSession`.
    package func move(_ ids: [SessionID], to destination: MoveDestination) throws -> [SessionID] {
        let indices = try indices(of: ids)
        let ids = ids.filter { indices[$0] != nil }
        let sorted = indices.values.sorted()
        let destinationIndex = try destinationIndex(of: destination, leavingOut: sorted)
        // `destinationIndex` leaves out the moved sessions; `next` and `previous` are the current indices of the neighbours.
        let next = Self.index(of: destinationIndex, leavingOut: sorted)
        let previous = destinationIndex == 0 ? -1 : Self.index(of: destinationIndex - 1, leavingOut: sorted)
        let moves = BlockMove(of: ids.compactMap { indices[$0] }, after: previous).moves
        guard !moves.isEmpty else { return [] }
        let room = try makeRoom(for: ids.count, at: next, after: previous)
        try link.query(
            """
            UPDATE session SET position = $2::bigint + (moved.n - 1) * $3::bigint
            FROM unnest($1::uuid[]) WITH ORDINALITY AS moved (id, n) WHERE session.id = moved.id
            """, [PostgresValue.array(ids.map { "\($0)" }), "\(room.position)", "\(room.step)"])
        for move in moves { try recordOrder(.moved(ids[move.offset], from: move.from, to: move.to)) }
        return moves.map { ids[$0.offset] }
    }

    /// The indices of the sessions that exist.
    func indices(of ids: [SessionID]) throws -> [SessionID: Int] {
        if ids.count == 1 { return try index(of: ids[0]).map { [ids[0]: $0] } ?? [:] }
        let rows = try link.query(
            """
            SELECT id, n FROM (
                SELECT id, row_number() OVER (ORDER BY position, id) - 1 AS n FROM session
                WHERE NOT is_removed AND position <= (SELECT max(position) FROM session WHERE id = ANY($1::uuid[]))) AS numbered
            WHERE id = ANY($1::uuid[])
            """, [PostgresValue.array(ids.map { "\($0)" })])
        return Dictionary(try rows.map { (try $0.session(0), Int(clamping: try $0.integer(1))) }) { first, _ in first }
    }

    /// The number of unmoved sessions before the destination.
    ///
    /// - Parameter moved: The indices of the moved sessions, ascending.
    private func destinationIndex(of destination: MoveDestination, leavingOut moved: [Int]) throws -> Int {
        let count = try sessionCount()
        switch destination {
        case .front: return 0
        case .end: return max(0, count - moved.count)
        case .index(let index, let expected):
            try checkOrder(expected)
            guard (0...max(0, count - moved.count)).contains(index) else {
                let what = moved.count == 1 ? "a session" : "\(moved.count) sessions"
                throw QueueError(.indexOutOfRange, "Cannot move \(what) to index \(index): the fleet has \(count) sessions.")
            }
            return index
        case .before(let other), .after(let other):
            guard let index = try index(of: other) else { throw QueueError(.noSuchSession, "There is no session \(other).") }
            let unmoved = index - moved.count { $0 < index }
            if case .after = destination, !moved.contains(index) { return unmoved + 1 }
            return unmoved
        }
    }

    /// The index of the session that would have the index `destinationIndex` if the moved sessions did not exist.
    private static func index(of destinationIndex: Int, leavingOut moved: [Int]) -> Int {
        moved.reduce(destinationIndex) { $1 <= $0 ? $0 + 1 : $0 }
    }
}

/// The moves that put sessions directly after one another.
private struct BlockMove {
    /// The indices of the moved sessions, in the order of the block. Each move changes the indices.
    private var indices: [Int]
    /// The index of the session that the next moved session follows; -1 for none.
    private var previous: Int
    /// The moves: the offset of the session in the block, and its indices directly before and after its move. Sessions that already follow
    /// the previous session have no move.
    private(set) var moves: [(offset: Int, from: Int, to: Int)] = []

    init(of indices: [Int], after previous: Int) {
        (self.indices, self.previous) = (indices, previous)
        for offset in indices.indices { move(offset) }
    }

    private mutating func move(_ offset: Int) {
        let from = indices[offset]
        let to = from > previous ? previous + 1 : previous
        previous = to
        guard to != from else { return }
        moves.append((offset, from, to))
        for other in indices.indices {
            if from < indices[other], indices[other] <= to {
                indices[other] -= 1
            } else if to <= indices[other], indices[other] < from {
                indices[other] += 1
            }
        }
        indices[offset] = to
    }
}
