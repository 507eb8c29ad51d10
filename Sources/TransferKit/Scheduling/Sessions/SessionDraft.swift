package import Foundation
package import TransferCore

/// A session that is about to be stored.
package struct SessionDraft: Sendable, Codable, Equatable {
    package var id: SessionID
    package var account: String
    package var name: String
    package var direction: TransferDirection
    /// The destination folder of downloads: a path, relative to the base folder unless it begins with a slash. Nil for an upload.
    package var folder: Data?
    package var tags: [String]
    package var context: Data?
    package var options: SessionOptions
    package var notBefore: Date?
    package var dependency: SessionDependency?
    package var deduplicationKey: String?
    /// Whether a completed session with the same deduplication key also makes this draft a duplicate.
    package var deduplicatesCompleted: Bool
    package var items: [ItemDraft]
    /// The error to throw instead of storing the session; nil for a valid session. Has no effect on a duplicate, which is not stored.
    package var refusal: QueueError?
    /// The progress that another queue made on the session, in the order in which that queue reported the progress; nil for a new session.
    /// See ``QueueConfiguration/progressObserver``.
    package var progress: [FileProgress]? = nil

    package init(
        id: SessionID, account: String, name: String, direction: TransferDirection = .upload, folder: Data? = nil, tags: [String] = [],
        context: Data? = nil,
        options: SessionOptions = SessionOptions(), notBefore: Date? = nil, dependency: SessionDependency? = nil,
        deduplicationKey: String? = nil, deduplicatesCompleted: Bool = false, items: [ItemDraft] = []
    ) {
        self.id = id
        self.account = account
        self.name = name
        self.direction = direction
        self.folder = folder
        self.tags = tags
        self.context = context
        self.options = options
        self.notBefore = notBefore
        self.dependency = dependency
        self.deduplicationKey = deduplicationKey
        self.deduplicatesCompleted = deduplicatesCompleted
        self.items = items
    }
}
