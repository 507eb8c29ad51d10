import Logging
import TransferCore

extension TransferQueue {
    /// Logs the most important durable events, and records their metrics. Does not log failed attempts, because their runs log them in more detail.
    func log(_ events: [QueueEvent]) {
        meters.record(events, scheduler)
        for event in events {
            guard let (level, message, details) = event.kind.logEntry, level >= configuration.logger.logLevel else { continue }
            var metadata = details
            if let id = event.session {
                metadata["session"] = "\(id)"
                let entry = scheduler.sessionIndex.key(of: id).flatMap { scheduler.sessionIndex[$0] }
                metadata["account"] = entry.flatMap { scheduler.accounts[$0.account]?.account.name }.map { "\($0)" }
            }
            configuration.logger.log(level: level, message, metadata: metadata)
        }
    }
}

extension QueueEvent.Kind {
    /// The level, the message and the metadata for the log; nil for events that are not logged.
    fileprivate var logEntry: (level: Logger.Level, message: Logger.Message, metadata: Logger.Metadata)? {
        switch self {
        case .queueStarted: (.info, "The queue started.", [:])
        case .queueStopped: (.info, "The queue stopped.", [:])
        case .queueBecameIdle: (.info, "The queue is idle.", [:])
        case .added(let ids, _): (.debug, ids.count == 1 ? "A session was added." : "\(ids.count) sessions were added.", [:])
        case .didActivate: (.info, "A session started.", [:])
        case .changed(let ids, let state):
            (.debug, ids.count == 1 ? "A session is now \(state)." : "\(ids.count) sessions are now \(state).", [:])
        case .completed: (.info, "A session completed.", [:])
        case .failed(_, let error): (.error, "A session failed: \(error)", [:])
        case .cancelled(let ids): (.info, ids.count == 1 ? "A session was cancelled." : "\(ids.count) sessions were cancelled.", [:])
        case .itemCompleted(_, let position, let receipt):
            (.debug, "An item completed with \(receipt.bytes) bytes.", ["item": "\(position)"])
        case .itemFailed(_, let position, let error): (.error, "An item failed: \(error)", ["item": "\(position)"])
        case .itemRestarted(_, let position, let error): (.notice, "An item restarts from byte 0: \(error)", ["item": "\(position)"])
        case .endpointChanged(_, let before, let endpoint):
            (.notice, "A session continues at another endpoint.", ["from": "\(before ?? "")", "endpoint": "\(endpoint)"])
        case .accountBlocked(let account, let error):
            (.error, "An account is blocked until you unblock it: \(error)", ["account": "\(account)"])
        case .accountUnblocked(let account): (.info, "An account was unblocked.", ["account": "\(account)"])
        case .needsCredentials(let account, let error):
            (.warning, "An account needs credentials: \(error)", ["account": "\(account)"])
        default: nil
        }
    }
}
