public import Foundation
public import SystemPackage
public import TransferCore

/// A request to ``TransferQueue/enqueue(_:at:held:)-(SessionRequest,_,_)``: the items of one session for one account, in order.
public struct SessionRequest: Sendable {
    /// The name of the account.
    public var account: String
    /// Upload or download.
    public var direction: TransferDirection
    /// The items, in the order of their transfer.
    public var items: [TransferItem]
    /// The local folder for a download; nil for an upload. The queue resolves a relative path against its base folder; see
    /// ``Storage/folder(_:base:ownerTimeout:)``.
    public var folder: FilePath?
    /// A human-readable name; nil for the name of the first item and the number of other items.
    public var name: String?
    /// Labels for grouping sessions. Statuses list them sorted and without duplicates.
    public var tags: [String]
    /// The app's context value as JSON; nil for no context. Every status of the session contains this value.
    public var context: Data?
    /// The options of the session.
    public var options: SessionOptions
    /// The earliest start time; nil for no earliest time.
    public var notBefore: Date?
    /// Another session that must complete or end first; nil for no dependency. The other session may be in the same call.
    public var dependency: SessionDependency?
    /// A key that prevents duplicates; nil for no key. If the queue has a session with the same key that is not completed, `enqueue` adds
    /// no session and returns the existing session.
    public var deduplicationKey: String?
    /// Whether completed sessions with the same ``deduplicationKey`` also count as duplicates, until they are removed. Needs a key.
    ///
    /// ``QueueConfiguration/retention`` determines when the queue removes completed sessions.
    public var deduplicatesCompleted = false
    /// The ID of the new session. Other requests of the same call can refer to the session by this ID.
    public var id = SessionID()

    /// Creates a request for an upload.
    ///
    /// - Parameters:
    ///   - items: The items to send, in this order.
    ///   - account: The name of a saved account.
    ///   - name: A human-readable name.
    ///   - tags: Labels for grouping sessions.
    ///   - context: Any value that is useful to the app. It is encoded as JSON immediately.
    ///   - options: The options of the session.
    /// - Throws: The errors of encoding the context.
    public static func upload(
        items: [TransferItem], to account: String, name: String? = nil, tags: [String] = [], context: (any Encodable)? = nil,
        options: SessionOptions = SessionOptions()
    ) throws -> SessionRequest {
        SessionRequest(
            account: account, direction: .upload, items: items, name: name, tags: tags,
            context: try context.map { try JSONEncoder().encode($0) }, options: options)
    }

    /// Creates a request for an upload of files and folders that keep their names.
    ///
    /// For the parameters and errors, see ``upload(items:to:name:tags:context:options:)``.
    public static func upload(
        _ paths: [some LocalPathConvertible], to account: String, name: String? = nil, tags: [String] = [], context: (any Encodable)? = nil,
        options: SessionOptions = SessionOptions()
    ) throws -> SessionRequest {
        try upload(
            items: paths.map { TransferItem($0) }, to: account, name: name, tags: tags, context: context, options: options)
    }

    /// Creates a request for a download of files into a folder.
    ///
    /// The folder must exist. The queue never writes outside of the folder: local names are relative and without `..`, and symbolic links
    /// below the folder are not followed. The queue uses a name from a server only for the content of a remote folder, and only if the name
    /// is a single path component. A setting of a transport, such as `contentDisposition` for plain HTTP, can permit the use of such a name for a
    /// file.
    ///
    /// Until a file is complete, its bytes are in a part file, a hidden file in the same folder whose name ends in `.part`.
    /// ``SessionOptions/overwrite`` is the policy for existing files.
    ///
    /// - Parameters:
    ///   - items: The items to download, in this order, created with ``TransferItem/remote(_:as:)`` and
    ///     ``TransferItem/remoteFolder(_:as:symbolicLinks:)``.
    ///   - account: The name of a saved account.
    ///   - folder: The local folder for the files.
    ///   - name: A human-readable name.
    ///   - tags: Labels for grouping sessions.
    ///   - context: Any value that is useful to the app. It is encoded as JSON immediately.
    ///   - options: The options of the session.
    /// - Throws: The errors of encoding the context.
    public static func download(
        items: [TransferItem], from account: String, to folder: some LocalPathConvertible, name: String? = nil, tags: [String] = [],
        context: (any Encodable)? = nil, options: SessionOptions = SessionOptions()
    ) throws -> SessionRequest {
        SessionRequest(
            account: account, direction: .download, items: items, folder: folder.filePath, name: name, tags: tags,
            context: try context.map { try JSONEncoder().encode($0) }, options: options)
    }

    /// Creates a request for a download of files into a folder. Each file gets the last component of its remote name.
    ///
    /// For the parameters and errors, see ``download(items:from:to:name:tags:context:options:)``.
    public static func download(
        _ paths: [some RemotePathConvertible], from account: String, to folder: some LocalPathConvertible, name: String? = nil,
        tags: [String] = [],
        context: (any Encodable)? = nil, options: SessionOptions = SessionOptions()
    ) throws -> SessionRequest {
        try download(
            items: paths.map { .remote($0) }, from: account, to: folder, name: name, tags: tags, context: context, options: options)
    }
}

extension SessionRequest {
    static func validate(notBefore: Date?) throws(QueueError) {
        let calendar = Date.distantPast.timeIntervalSince1970...Date.distantFuture.timeIntervalSince1970
        guard let notBefore, !calendar.contains(notBefore.timeIntervalSince1970) else { return }
        throw QueueError(.invalidRequest, "The start time is out of range. Set a different one, or omit it to start immediately.")
    }
}
