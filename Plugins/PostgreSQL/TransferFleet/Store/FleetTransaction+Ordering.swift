package import TransferKit

extension FleetTransaction {
    /// Finds free positions between two neighbours. Renumbers all sessions if there are not enough free positions.
    ///
    /// - Parameters:
    ///   - index: The index of the session after the free positions.
    ///   - previous: The index of the session before the free positions; by default, `index - 1`. The positions of sessions between the two
    ///     are regarded as free.
    /// - Returns: The first position, and the distance between two positions.
    /// - Throws: ``QueueError`` with the code `invalidRequest` if there are not enough positions even after the renumbering.
    package func makeRoom(for count: Int, at index: Int, after previous: Int? = nil) throws -> (position: Int64, step: Int64) {
        let previous = previous ?? index - 1
        for _ in 0..<2 {
            let before = previous < 0 ? 0 : try position(at: previous) ?? 0
            if let after = try position(at: index) {
                let (gap, overflows) = after.subtractingReportingOverflow(before)
                let step = gap / (Int64(count) + 1)
                if !overflows, step >= 1 { return (before + step, step) }
            } else {
                return try roomAtEnd(for: count)
            }
            try renumber(for: count)
        }
        throw QueueError.noRoom(for: count)
    }

    /// The first position after all sessions, and the distance between two positions. Renumbers all sessions if there are not enough positions.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest` if there are not enough positions even after the renumbering.
    func roomAtEnd(for count: Int) throws -> (position: Int64, step: Int64) {
        for _ in 0..<2 {
            let last = try link.query("SELECT coalesce(max(position), 0) FROM session WHERE NOT is_removed").first?.integer(0) ?? 0
            if let room = Self.room(for: count, after: last) { return room }
            try renumber(for: count)
        }
        throw QueueError.noRoom(for: count)
    }

    /// The first position after `last`, and the distance between two positions; nil if there are not enough positions.
    private static func room(for count: Int, after last: Int64) -> (position: Int64, step: Int64)? {
        let (length, isTooLong) = Int64(count).multipliedReportingOverflow(by: positionGap)
        let (_, overflows) = last.addingReportingOverflow(length)
        return count < 1 || isTooLong || overflows ? nil : (last + positionGap, positionGap)
    }

    /// Gives all sessions new positions, so that `count` sessions fit between any two neighbours.
    ///
    /// - Throws: ``QueueError`` with the code `invalidRequest` if there are not enough positions.
    private func renumber(for count: Int) throws {
        do throws(PostgresError) {
            try link.query(
                """
                UPDATE session SET position = numbered.n * ((\(count)::bigint + 1) * \(Self.positionGap))
                FROM (SELECT id, row_number() OVER (ORDER BY position, id) AS n FROM session) AS numbered WHERE numbered.id = session.id
                """)
        } catch {
            guard error.isOutOfRange else { throw error }
            throw QueueError.noRoom(for: count)
        }
    }

    private func position(at index: Int) throws -> Int64? {
        try link.query("SELECT position FROM session WHERE NOT is_removed ORDER BY position, id OFFSET $1 LIMIT 1", ["\(index)"]).first?
            .integer(0)
    }

    package func index(of id: SessionID) throws -> Int? {
        let row = try link.query(
            """
            SELECT (SELECT count(*) FROM session AS other WHERE NOT other.is_removed AND (other.position, other.id) < (session.position, session.id))
            FROM session WHERE id = $1 AND NOT is_removed
            """, ["\(id)"]
        ).first
        return try row.map { Int(clamping: try $0.integer(0)) }
    }

    /// Returns the ID of the session to which a reference refers. Checks that the session exists.
    ///
    /// - Throws: ``QueueError`` with the code `noSuchSession`, `indexOutOfRange` or `staleOrder`.
    package func resolve(_ reference: SessionReference) throws -> SessionID {
        switch reference {
        case .id(let id):
            guard try link.query("SELECT 1 FROM session WHERE id = $1 AND NOT is_removed", ["\(id)"]).first != nil else {
                throw QueueError(.noSuchSession, "There is no session \(id).")
            }
            return id
        case .index(let index, let expected):
            try checkOrder(expected)
            guard index >= 0,
                let row = try link.query(
                    "SELECT id FROM session WHERE NOT is_removed ORDER BY position, id OFFSET $1 LIMIT 1", ["\(index)"]
                ).first
            else {
                throw QueueError(.indexOutOfRange, "There is no session at index \(index): the fleet has \(try sessionCount()) sessions.")
            }
            return try row.session(0)
        }
    }

    /// Throws ``QueueError`` with the code `staleOrder` if the order does not have the expected revision. Accepts any order if `expected`
    /// is nil.
    package func checkOrder(_ expected: UInt64?) throws {
        guard let expected, let row = try link.query("SELECT order_revision FROM fleet").first else { return }
        guard UInt64(clamping: try row.integer(0)) == expected else {
            throw QueueError(.staleOrder, "The order has changed since it was read. Read it again.")
        }
    }
}

extension QueueError {
    /// The error for more sessions than there are positions in the order.
    fileprivate static func noRoom(for count: Int) -> QueueError {
        QueueError(
            .invalidRequest,
            "The order of the fleet has no free positions for \(count) more sessions. Add or move fewer sessions in one call.")
    }
}
