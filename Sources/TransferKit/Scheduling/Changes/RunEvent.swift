package import TransferCore

/// An event that a session's run reports to the scheduler.
package struct RunEvent: Sendable, Codable {
    package var key: SessionKey
    /// The number of the run; see ``Transaction/Action/run(_:_:run:_:)``.
    package var run: UInt64
    package var content: Content

    package init(key: SessionKey, run: UInt64, content: Content) {
        self.key = key
        self.run = run
        self.content = content
    }

    package enum Content: Sendable, Codable {
        /// Bytes moved: the first bytes of the run, or the first since an attempt failed while no other file was in flight.
        case connected
        case file(position: Int64, FileEvent)
        case expansion(ExpansionStep)
        /// The run requests permission to probe an endpoint that failed too often. ``InputResult/isGranted`` contains the decision.
        case probe(Endpoint)
        /// The run uses this endpoint from now on.
        case endpoint(Endpoint)
        /// A file continues at an endpoint other than the session's last endpoint.
        case endpointChanged(from: String, to: String)
        /// An attempt showed that an endpoint works, because bytes moved or the server performed a request. Reported once, and again after each
        /// reported failure of the endpoint.
        case endpointWorks(Endpoint)
        /// An attempt failed because the endpoint was unreachable, or because of a transient error before the endpoint confirmed anything.
        /// Reported once for files in flight that fail together.
        case endpointFailed(Endpoint, TransferError)
        /// The server asked all clients of its host to back off for a time.
        case hostBusy(Endpoint, Duration)
        /// An attempt failed and will be repeated while the session keeps its slot. `isLastInFlight` is true if no other file of the session
        /// is in flight.
        case attemptFailed(TransferError, retryIn: Duration, isLastInFlight: Bool)
        /// The waiting files of the run are due now, because of a command such as `run`.
        case waitsSkipped
        /// The time that the run's attempts spent in each phase of the transfer. Reported before the end of the run.
        case times(TransferTimes)
        case ended(RunOutcome)
        /// The run was expected to end with this outcome, but did not end within 30 s. The scheduler ignores the run's later events,
        /// except ``ended(_:)``.
        case abandoned(RunOutcome)

        var isEnd: Bool { if case .ended = self { true } else { false } }

        /// Whether the queue no longer waits for the run.
        var isFinal: Bool { if case .abandoned = self { true } else { isEnd } }
    }
}

/// An event of one file. For the generation of a file, see ``PendingFile/generation``.
package enum FileEvent: Sendable, Codable, Equatable {
    /// A checkpoint and the identity of the source file. The identity is nil for a download.
    case checkpoint(Checkpoint, endpoint: Endpoint, generation: Int64, SourceIdentity?)
    /// The size of the file in bytes. Reported when an unknown size becomes known, or when the size differs from the stored size.
    case size(Int64)
    case completed(TransferReceipt, endpoint: Endpoint)
    /// The file failed; no attempt follows.
    case failed(TransferError)
    /// The file restarts from byte 0 with this generation number, because of the error.
    case restarted(generation: Int64, TransferError)
    /// The file's remote name refers to a folder, which must be listed.
    case foundFolder
    /// `isPossible` is true if the server may have created something permanent for the file, such as a database record. If so, no attempt
    /// may send the file a second time. Not stored; only the progress observer receives this event.
    case record(isPossible: Bool, generation: Int64)
}

/// A change to one file of a session. With these changes, another queue can continue the session.
package struct FileProgress: Sendable, Codable, Equatable {
    package var position: Int64
    package var event: FileEvent

    package init(position: Int64, event: FileEvent) {
        self.position = position
        self.event = event
    }
}

/// How a run of a session ended.
package enum RunOutcome: Sendable, Codable {
    /// All files have completed or failed, or the session failed. `failure` is the error of the first failed file or of the session, if
    /// any.
    ///
    /// If `ignoresNewFiles` is true, the session ends even if items were added during the run, unless the run was interrupted.
    case finished(failure: TransferError?, ignoresNewFiles: Bool)
    case interrupted
    /// The next attempt is due after a delay.
    case backoff(Duration, TransferError)
    /// The run can currently use no endpoint of the account.
    case endpointsUnavailable(TransferError)
    /// The account can't be used until the app or the user acts. The second value is the account as the attempt used it.
    case accountBlocked(TransferError, Account)
    /// This machine lacks disk space, memory, threads or file descriptors.
    case noSpace(TransferError)
}
