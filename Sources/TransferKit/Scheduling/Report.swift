package import TransferCore

/// What a run of a session tells the scheduler, named with the run that it belongs to.
package struct Report: Sendable, Codable {
    package var key: SessionKey
    /// The number of the run, see ``Transaction/Action/run(_:_:run:_:)``.
    package var run: UInt64
    package var content: Content

    package init(key: SessionKey, run: UInt64, content: Content) {
        self.key = key
        self.run = run
        self.content = content
    }

    package enum Content: Sendable, Codable {
        /// The transport works: something moved for the first time in this run, or since an attempt failed.
        case connected
        /// Something about one file that only has to be stored and told.
        case file(position: Int64, FileReport)
        /// A step of reading the session's folders, to be stored.
        case expansion(ExpansionStep)
        /// The run is about to ask an endpoint that failed too often; the answer says whether it may.
        case probe(Endpoint)
        /// The run uses this endpoint from now on.
        case endpoint(Endpoint)
        /// A file goes on at another endpoint than its session used before.
        case endpointChanged(from: String, to: String)
        /// An attempt at an endpoint moved bytes or finished a file, for the first time or since the last failure there.
        case endpointWorks(Endpoint)
        /// An attempt at an endpoint failed before it moved any byte, in a way that tells of the endpoint.
        case endpointFailed(Endpoint, TransferError)
        /// The server wants the whole host to be left alone for so long.
        case hostBusy(Endpoint, Duration)
        /// An attempt failed and is repeated while the slot is kept; `endsRun` if no other file of the session is in flight.
        case attemptFailed(TransferError, retryIn: Duration, endsRun: Bool)
        /// The run is over.
        case ended(RunOutcome)
        /// The run was told to end and has not done so in time. Its later reports are dropped.
        case abandoned

        /// Whether it is the last report of a run.
        var isEnd: Bool { if case .ended = self { true } else { false } }
    }
}

/// What happened to one file.
package enum FileReport: Sendable, Codable {
    /// The identity is that of the file that is sent; nil of a download.
    case checkpoint(Checkpoint, endpoint: Endpoint, generation: Int64, SourceIdentity?)
    case size(Int64)
    case completed(TransferReceipt, endpoint: Endpoint)
    case failed(TransferError)
    case restarted(generation: Int64, TransferError)
    /// What was to be received is a folder: it is an item that is yet to be listed.
    case foundFolder
}

/// How a run of a session ended.
package enum RunOutcome: Sendable, Codable {
    /// No file is left; some may have failed, the first of them with this error.
    ///
    /// `itemsSeen` is how many files the session had when the run found none left: more may have been added since.
    case finished(failure: TransferError?, itemsSeen: Int64)
    /// The queue asked for it.
    case interrupted
    /// The next attempt is due later.
    case backoff(Duration, TransferError)
    /// No endpoint may be asked at present.
    case endpointsUnavailable(TransferError)
    /// The account, as it was for this attempt, can't be used until a person acts.
    case accountBlocked(TransferError, Account)
    /// This machine lacks space or descriptors.
    case noSpace(TransferError)
}
