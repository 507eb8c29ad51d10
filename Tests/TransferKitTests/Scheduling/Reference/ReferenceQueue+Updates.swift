import TransferKit

extension ReferenceQueue {
    /// Rejects an update with an unknown account or session, even for an empty group.
    func requireNames(in update: SessionUpdate) throws(QueueError) {
        if let name = update.account { _ = try requireAccount(name) }
        if let other = update.dependency?.value?.session { _ = try requireIndex(of: other) }
    }

    func replaceItems(_ selection: ItemSelection, in reference: SessionReference) throws(QueueError) -> InputResult {
        let session = sessions[try requireIndex(of: resolve(reference))]
        let isFixed = selection == .all && (session.hasTransferred || ![.waiting, .held, .draft].contains(session.state))
        guard !session.state.isEnded, session.run == nil, !isFixed else { throw QueueError(.invalidTransition, "") }
        return InputResult(sessions: [session.id])
    }

    mutating func update(_ index: Int, _ update: SessionUpdate) throws(QueueError) {
        let isAtRest = [.waiting, .held, .draft].contains(sessions[index].state)
        if update.account != nil || update.overwrite != nil {
            guard isAtRest, sessions[index].run == nil, !sessions[index].hasTransferred else { throw QueueError(.invalidTransition, "") }
        }
        if update.notBefore != nil || update.dependency != nil, !isAtRest { throw QueueError(.invalidTransition, "") }
        if let change = update.dependency {
            sessions[index].dependency = nil
            if let dependency = change.value, !isSatisfied(dependency, by: sessions[try requireIndex(of: dependency.session)]) {
                sessions[index].dependency = dependency
                try requireOrderOfDependencies()
                try requireNoCycle()
            }
        }
        if let change = update.notBefore { sessions[index].notBefore = change.value }
        if let name = update.account {
            let number = accounts[try requireAccount(name)].number
            if number != sessions[index].account { sessions[index].retryAt = nil }
            sessions[index].account = number
        }
        if let tags = update.tags {
            sessions[index].tags = Set(tags)
            sessions[index].earlierTags.formUnion(tags)
        }
        if let allows = update.allowsExpensiveNetwork { sessions[index].allowsExpensiveNetwork = allows }
        interruptSessionsWithoutNetwork()
    }
}
