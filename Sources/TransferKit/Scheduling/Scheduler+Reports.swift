import TransferCore

extension Scheduler {
    package mutating func handle(_ report: Report, at now: Moment) -> Transaction {
        if case .ended = report.content, flags.ending.contains(report.run) {
            var transaction = Transaction()
            mutateFlags { $0.ending.remove(report.run) }
            finishStoppingIfEmpty(&transaction)
            return transaction
        }
        // What a run tells of a session that was removed meanwhile is void.
        guard let entry = entries[report.key], entry.state == .running, entry.activation == report.run else { return Transaction() }
        switch report.content {
        case .file(let position, let fileReport):
            return handle(fileReport, position: position, of: report.key, entry.id)
        case .expansion(let step):
            return Transaction(writes: [.expansion(report.key, step)], events: Self.failures(in: step, of: entry.id))
        case .connected, .endpointWorks, .endpointFailed, .hostBusy:
            return Transaction()
        case .endpoint(let endpoint):
            return Transaction(writes: [.setEndpoint(report.key, endpoint.location, endpoint.transport)])
        case .attemptFailed(let error, let delay, _):
            return Transaction(
                writes: [.attemptFailed(report.key, error)], events: [.attemptFailed(entry.id, error, retryAt: now.date + delay)])
        case .ended(let outcome):
            return end(report.key, entry, outcome, at: now)
        }
    }

    private func handle(_ report: FileReport, position: Int64, of key: SessionKey, _ id: SessionID) -> Transaction {
        let write = StoreWrite.file(key, position: position, report)
        return switch report {
        case .checkpoint, .size: Transaction(writes: [write])
        case .completed(let receipt): Transaction(writes: [write], events: [.itemCompleted(id, position: position, receipt)])
        case .failed(let error): Transaction(writes: [write], events: [.itemFailed(id, position: position, error)])
        case .restarted(_, let error): Transaction(writes: [write], events: [.itemRestarted(id, position: position, error)])
        }
    }

    private static func failures(in step: ExpansionStep, of id: SessionID) -> [QueueEvent.Kind] {
        guard case .add(_, let batch) = step else { return [] }
        return batch.entries.compactMap { entry in
            guard entry.state == .failed, let error = entry.error else { return nil }
            return .itemFailed(id, position: entry.position, error)
        }
    }

    private mutating func end(_ key: SessionKey, _ entry: Entry, _ outcome: RunOutcome, at now: Moment) -> Transaction {
        var transaction = Transaction()
        mutateFlags { $0.running.remove(key) }
        switch outcome {
        case .finished(nil, _):
            mutate(key) { $0.state = .completed }
            transaction.writes.append(.endSession(key, .completed, nil, now.date))
            transaction.events.append(.completed(entry.id))
        case .finished(let failure?, _):
            mutate(key) { $0.state = .failed }
            transaction.writes.append(.endSession(key, .failed, failure, now.date))
            transaction.events.append(.failed(entry.id, failure))
        case .interrupted:
            wait(key, isInterrupted: true, &transaction)
            transaction.events.append(.didDeactivate(entry.id))
        case .backoff(let delay, let error):
            let due = Moment(uptime: now.uptime + delay, date: now.date + delay)
            wait(key, isInterrupted: false, &transaction)
            mutate(key) { $0.retryAt = due }
            mutateFlags { $0.timed.insert(key) }
            transaction.writes.append(.attemptFailed(key, error))
            transaction.events += [.attemptFailed(entry.id, error, retryAt: due.date), .didDeactivate(entry.id)]
        case .endpointsUnavailable, .noSpace:
            wait(key, isInterrupted: true, &transaction)
        case .accountBlocked(let error, let refused):
            wait(key, isInterrupted: false, &transaction)
            transaction.writes.append(.attemptFailed(key, error))
            transaction.events.append(.didDeactivate(entry.id))
            // An account that was edited meanwhile is another one than that which was refused.
            if var account = accounts[entry.account], account.block == nil, account.account == refused {
                account.block = AccountBlock(error: error)
                setAccount(entry.account, account)
                transaction.writes.append(.blockAccount(entry.account, account.block))
                transaction.events.append(.accountBlocked(account: account.account.name, error))
            }
        }
        finishStoppingIfEmpty(&transaction)
        return transaction
    }

    private mutating func wait(_ key: SessionKey, isInterrupted: Bool, _ transaction: inout Transaction) {
        mutate(key) {
            $0.state = .waiting
            $0.isInterrupted = isInterrupted
        }
        transaction.writes.append(.setWaiting(key, isInterrupted: isInterrupted))
    }
}
