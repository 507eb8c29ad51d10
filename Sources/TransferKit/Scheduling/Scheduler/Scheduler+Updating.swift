import TransferCore

/// Updates of a session's properties.
extension Scheduler {
    /// Checks that the account and the session that an update names exist. Without this check, an update of a group would skip every session,
    /// without an error.
    func check(_ update: SessionUpdate) throws(QueueError) {
        if let name = update.account { _ = try accountKey(name) }
        if case .set(let dependency) = update.dependency { _ = try resolve(.id(dependency.session)) }
    }

    /// Updates a session that has not completed. Makes all changes or none.
    ///
    /// - Throws: ``QueueError`` with the code `invalidTransition` if the session's state does not permit a change, `noSuchAccount`,
    ///   `noSuchSession`, or `impossibleOrder`.
    mutating func apply(
        _ update: SessionUpdate, to entry: Entry, at now: DualInstant, _ transaction: inout Transaction
    ) throws(QueueError) {
        if let property = update.fixedProperty { try checkUnbegun(entry, property) }
        if let property = update.startProperty, !entry.isAtRest {
            throw changeRefusal(entry, property, "Hold it first.")
        }
        let account = try update.account.map { name throws(QueueError) in try accountKey(name) }
        let dependency = try update.dependency?.value.flatMap { dependency throws(QueueError) in
            try isUnmet(dependency, of: entry) ? dependency : nil
        }
        if let dependency { try checkForCycle(from: entry, dependency) }

        let key = entry.key
        if update.dependency != nil {
            mutate(key) { entry, details in
                details.dependency = dependency
                if dependency == nil { entry.conditions.remove(.dependent) } else { entry.conditions.insert(.dependent) }
            }
        }
        if let change = update.notBefore {
            let notBefore = change.value.flatMap { $0 > now.date ? $0 : nil }
            mutate(key) { entry, details in
                details.notBefore = notBefore
                if notBefore == nil { entry.conditions.remove(.early) } else { entry.conditions.insert(.early) }
            }
        }
        if let change = update.deadline {
            mutate(key) { _, details in
                details.deadline = change.value
                details.isOverdue = false
            }
        }
        transaction.writes.append(.updateSession(key, update))
        if let account, account != entry.account { setAccount(of: key, account, &transaction) }
        if let tags = update.tags { recordTags(Set(tags), of: key) }
        transaction.events.append(.updated(entry.id))
        transaction.actions.append(.refresh(key))
        if let allows = update.allowsExpensiveNetwork { setNeedsCheapNetwork(!allows, key, &transaction) }
    }

    /// Assigns another account to a session that has transferred nothing. Failures at the old account no longer delay the session.
    private mutating func setAccount(of key: SessionKey, _ account: AccountKey, _ transaction: inout Transaction) {
        mutate(key) { entry, details in
            entry.account = account
            guard entry.conditions.contains(.backoff), !entry.conditions.contains(.unreadable) else { return }
            entry.conditions.remove(.backoff)
            details.retryAt = nil
            details.ownRetryAt = nil
        }
        transaction.writes.append(.changeAccount(key, account))
        transaction.actions.append(.forget(key))
    }

    /// Removes items that have not begun, and adds items at the end of the session. The caller has checked that the selected items have not begun.
    mutating func replaceItems(
        _ selection: ItemSelection, _ rows: ReplaceableItems, with items: [ItemDraft], in reference: SessionReference,
        _ transaction: inout Transaction
    ) throws(QueueError) {
        let key = try resolve(reference)
        guard let entry = sessionIndex[key] else { return }
        guard !entry.state.isEnded else { throw invalidTransition(entry, "changed") }
        if selection == .all { try checkUnbegun(entry, "items") } else { try checkHasNoRun(entry, "items") }
        transaction.writes.append(.replaceItems(key, selection, rows, with: items))
        // A new item can get the position of a removed item, whose history must not apply to the new item.
        transaction.actions.append(.forget(key))
        transaction.events.append(.updated(entry.id))
        transaction.result.sessions = [entry.id]
    }

    /// Checks that a session is at rest (``Entry/isAtRest``), has no run, and has transferred nothing, so that a change applies to all of its
    /// files.
    ///
    /// - Parameter property: The property to change, as a noun for the message.
    /// - Throws: ``QueueError`` with the code `invalidTransition`.
    func checkUnbegun(_ entry: Entry, _ property: String) throws(QueueError) {
        guard !entry.conditions.contains(.hasTransferred) else {
            throw QueueError(
                .invalidTransition,
                "The session \(entry.id) has transferred content, so its \(property) can't be changed. Add a new session instead.")
        }
        guard entry.isAtRest else { throw changeRefusal(entry, property, Self.holdFirstAdvice) }
        try checkHasNoRun(entry, property)
    }

    private func checkHasNoRun(_ entry: Entry, _ property: String) throws(QueueError) {
        guard sessionIndex.details(entry.key).run == 0, !entry.conditions.contains(.runNotEnded) else {
            throw changeRefusal(entry, property, Self.holdFirstAdvice)
        }
    }

    private static let holdFirstAdvice = "Hold it first, and wait until its run has ended."

    private func changeRefusal(_ entry: Entry, _ property: String, _ advice: String) -> QueueError {
        let advice = entry.state.isEnded ? "Retry it, and hold it before it starts." : advice
        return QueueError(
            .invalidTransition, "The session \(entry.id) is \(entry.shownState.rawValue), so its \(property) can't be changed. \(advice)")
    }

    private func checkForCycle(from entry: Entry, _ dependency: SessionDependency) throws(QueueError) {
        var seen: Set<SessionKey> = []
        var next = sessionIndex.key(of: dependency.session)
        // A damaged database can contain a dependency cycle of other sessions, so the walk ends at the first repeated session.
        while let key = next, seen.insert(key).inserted {
            guard key != entry.key else {
                throw QueueError(
                    .impossibleOrder,
                    "The session \(entry.id) can't depend on \(dependency.session), because the sessions would wait for each other.")
            }
            next = sessionIndex.details(key).dependency.flatMap { sessionIndex.key(of: $0.session) }
        }
    }
}
