import Foundation
import TransferCore
import TransferKit

extension FleetTransaction {
    /// Changes properties of a session that no member has. The member that takes the session next uses the new values.
    ///
    /// - Throws: ``QueueError`` with the code `invalidTransition` if a member has the session, or its state does not permit the change;
    ///   `invalidRequest`, `noSuchAccount`, `noSuchSession` or `impossibleOrder`. After an error, nothing is changed.
    func update(_ id: SessionID, _ state: SessionState, isOwned: Bool, _ update: SessionUpdate) throws {
        try update.validate()
        guard state != .completed else {
            throw QueueError(.invalidTransition, "The session \(id) is completed, so it can't be changed.")
        }
        guard !isOwned else {
            throw QueueError(
                .invalidTransition,
                "A member has the session \(id), so it can't be changed. Hold it first, and wait until its member has stopped it.")
        }
        if let property = update.fixedProperty, try link.query("SELECT 1 FROM progress WHERE session = $1 LIMIT 1", ["\(id)"]).first != nil
        {
            throw QueueError(
                .invalidTransition,
                "The session \(id) has transferred content, so its \(property) can't be changed. Add a new session instead.")
        }
        if let property = update.startProperty, state != .waiting, state != .held {
            throw QueueError(
                .invalidTransition, "The session \(id) is \(state.rawValue), so its \(property) can't be changed. Hold it first.")
        }
        if let account = update.account { try requireAccount(account) }
        let after = try update.dependency?.value.flatMap { try isUnmet($0) ? $0 : nil }
        if let after { try checkForCycle(from: id, to: after.session) }
        var problem: TransferError?
        guard
            var draft = try link.query("SELECT draft FROM content WHERE session = $1", ["\(id)"]).first?
                .readable(SessionDraft.self, 0, &problem)
        else {
            throw QueueError(.invalidTransition, problem?.message ?? "The session \(id) has no content. Remove it.")
        }
        update.apply(to: &draft.options)
        if let account = update.account { draft.account = account }
        if let name = update.name { draft.name = name }
        if let tags = update.tags { draft.tags = tags }
        if let context = update.context { draft.context = context.value }

        try link.query("UPDATE content SET draft = $2 WHERE session = $1", ["\(id)", try PostgresValue.json(draft)])
        try link.query("UPDATE session SET account = $2 WHERE id = $1", ["\(id)", draft.account])
        if let tags = update.tags {
            try link.query("DELETE FROM session_tag WHERE session = $1", ["\(id)"])
            try setTags(tags, of: id)
        }
        if let change = update.notBefore {
            try link.query("UPDATE session SET not_before = to_timestamp($2) WHERE id = $1", ["\(id)", PostgresValue.date(change.value)])
        }
        if update.dependency != nil {
            try link.query(
                "UPDATE session SET after_id = $2, after_any = $3 WHERE id = $1",
                ["\(id)", after.map { "\($0.session)" }, "\(after?.acceptsAnyEnd ?? false)"])
        }
        try forgetRefusals(of: id)
        record(.updated(id))
    }

    /// Checks that a session would not wait for itself.
    private func checkForCycle(from id: SessionID, to other: SessionID) throws {
        let row = try link.query(
            """
            WITH RECURSIVE chain(id) AS (
                SELECT $2::uuid UNION SELECT after_id FROM session JOIN chain USING (id) WHERE after_id IS NOT NULL)
            SELECT 1 FROM chain WHERE id = $1::uuid
            """, ["\(id)", "\(other)"]
        ).first
        guard row == nil else {
            throw QueueError(.impossibleOrder, "The session \(id) would depend on itself, directly or through other sessions.")
        }
    }
}
