package import Foundation
package import TransferCore

/// A session's row in the store; the short name that the engine uses within one storage folder.
package typealias SessionKey = Int64

/// An account's row in the store.
package typealias AccountKey = Int64

/// All that the scheduler can be told.
package enum Input: Sendable {
    /// What an app asks for.
    case command(Command)
    /// What a running session tells.
    case report(Report)
    /// Time went on: something that was due later may be due now.
    case tick
}

/// A verb of the queue, as a value: it can be recorded and replayed.
package enum Command: Sendable, Codable {
    case saveAccount(Account)
    case deleteAccount(name: String)
    case unblockAccount(name: String)
    case enqueue([SessionDraft])
    case remove([SessionID])
    case start
    case stop
}

/// A session that is about to be stored; everything is checked, nothing is left to chance.
package struct SessionDraft: Sendable, Codable, Equatable {
    package var id: SessionID
    package var account: String
    package var name: String
    package var direction: TransferDirection
    package var tags: [String]
    package var context: Data?
    package var options: SessionOptions
    package var files: [FileDraft]

    package init(
        id: SessionID, account: String, name: String, direction: TransferDirection = .upload, tags: [String] = [], context: Data? = nil,
        options: SessionOptions = SessionOptions(), files: [FileDraft] = []
    ) {
        self.id = id
        self.account = account
        self.name = name
        self.direction = direction
        self.tags = tags
        self.context = context
        self.options = options
        self.files = files
    }
}

/// A file of a ``SessionDraft``. Names are bytes.
package struct FileDraft: Sendable, Codable, Equatable {
    package var source: Data
    package var destination: Data
    package var size: Int64

    package init(source: Data, destination: Data, size: Int64) {
        self.source = source
        self.destination = destination
        self.size = size
    }
}

/// What a run of a session tells the scheduler, named with the activation that it belongs to.
package struct Report: Sendable {
    package var key: SessionKey
    package var activation: UInt64
    package var content: Content

    package init(key: SessionKey, activation: UInt64, content: Content) {
        self.key = key
        self.activation = activation
        self.content = content
    }

    package enum Content: Sendable {
        /// Something about one file that only has to be stored and told.
        case file(position: Int64, FileReport)
        /// The run uses this endpoint from now on.
        case endpoint(Endpoint)
        /// An attempt failed and is repeated while the slot is kept.
        case attemptFailed(TransferError, retryIn: Duration)
        /// The run is over.
        case ended(RunOutcome)
    }
}

/// What happened to one file.
package enum FileReport: Sendable {
    case checkpoint(Checkpoint, endpoint: String, generation: Int64, SourceIdentity)
    case size(Int64)
    case completed(TransferReceipt)
    case failed(TransferError)
    case restarted(generation: Int64, TransferError)
}

/// How a run of a session ended.
package enum RunOutcome: Sendable {
    /// No file is left; some may have failed, the first of them with this error.
    case finished(failure: TransferError?)
    /// The queue asked for it.
    case interrupted
    /// The next attempt is due later.
    case backoff(Duration, TransferError)
    /// The account, as it was for this attempt, can't be used until a person acts.
    case accountBlocked(TransferError, Account)
}

/// A point in time, on both clocks.
package struct Moment: Sendable, Equatable {
    /// Time since an arbitrary point; never jumps.
    package var uptime: Duration
    /// Time of day.
    package var date: Date

    package init(uptime: Duration, date: Date) {
        self.uptime = uptime
        self.date = date
    }
}
