public import Foundation
public import SystemPackage
public import TransferCore

/// What an app hands to ``TransferQueue/enqueue(_:at:held:)-(SessionRequest,_,_)``: one ordered batch of files for one account.
public struct SessionRequest: Sendable {
    /// The name of the account.
    public var account: String
    /// Which way.
    public var direction: TransferDirection
    /// What to move, in this order.
    public var items: [TransferItem]
    /// Where a download goes; nil for an upload. A relative path is taken from the working directory at the time of the enqueueing.
    public var folder: FilePath?
    /// A name for people; nil for one made of the first item.
    public var name: String?
    /// Words that the app groups sessions by; in statuses they come sorted, each once.
    public var tags: [String]
    /// The app's own value as JSON, handed back in every status.
    public var context: Data?
    /// How to run it.
    public var options: SessionOptions
    /// Not to start before this time; nil for no such wish.
    public var notBefore: Date?
    /// Not to start before another session; nil for no such wish. The other one may be in the same call.
    public var dependency: SessionDependency?
    /// If a session with the same key is in the queue and not completed, that one is returned and nothing is added.
    public var deduplicationKey: String?
    /// The identity that the session will have, so that other requests of the same call can refer to it.
    public var id = SessionID()

    /// Makes a request for an upload of files.
    ///
    /// - Parameters:
    ///   - items: What to send, in this order.
    ///   - account: The name of a saved account.
    ///   - name: A name for people.
    ///   - tags: Words to group sessions by.
    ///   - context: Any value of the app's, encoded as JSON at once.
    ///   - options: How to run it.
    /// - Throws: What encoding the context throws.
    public static func upload(
        items: [TransferItem], to account: String, name: String? = nil, tags: [String] = [], context: (any Encodable)? = nil,
        options: SessionOptions = SessionOptions()
    ) throws -> SessionRequest {
        SessionRequest(
            account: account, direction: .upload, items: items, name: name, tags: tags,
            context: try context.map { try JSONEncoder().encode($0) }, options: options)
    }

    /// Makes a request for an upload of files that keep their own names.
    ///
    /// Parameters and errors as for ``upload(items:to:name:tags:context:options:)``.
    public static func upload(
        _ paths: [FilePath], to account: String, name: String? = nil, tags: [String] = [], context: (any Encodable)? = nil,
        options: SessionOptions = SessionOptions()
    ) throws -> SessionRequest {
        try upload(
            items: paths.map { TransferItem($0) }, to: account, name: name, tags: tags, context: context, options: options)
    }

    /// Makes a request for a download of files into a folder.
    ///
    /// The folder has to exist. Nothing is written outside of it: local names are relative and without `..`, of what a server tells only the
    /// names in a remote folder are used, each if it is a single name, and no symbolic link below the folder is followed. Until a file is complete, its bytes are in a hidden file beside it, whose name
    /// ends in `.part`. What happens to files that are there already is said by ``SessionOptions/overwrite``.
    ///
    /// - Parameters:
    ///   - items: What to receive, in this order; made with ``TransferItem/remote(_:as:)`` and
    ///     ``TransferItem/remoteFolder(_:as:symbolicLinks:)``.
    ///   - account: The name of a saved account.
    ///   - folder: Where the files go.
    ///   - name: A name for people.
    ///   - tags: Words to group sessions by.
    ///   - context: Any value of the app's, encoded as JSON at once.
    ///   - options: How to run it.
    /// - Throws: What encoding the context throws.
    public static func download(
        items: [TransferItem], from account: String, to folder: FilePath, name: String? = nil, tags: [String] = [],
        context: (any Encodable)? = nil, options: SessionOptions = SessionOptions()
    ) throws -> SessionRequest {
        SessionRequest(
            account: account, direction: .download, items: items, folder: folder, name: name, tags: tags,
            context: try context.map { try JSONEncoder().encode($0) }, options: options)
    }

    /// Makes a request for a download of files into a folder, where each gets the last component of its remote name.
    ///
    /// Parameters and errors as for ``download(items:from:to:name:tags:context:options:)``.
    public static func download(
        _ paths: [RemotePath], from account: String, to folder: FilePath, name: String? = nil, tags: [String] = [],
        context: (any Encodable)? = nil, options: SessionOptions = SessionOptions()
    ) throws -> SessionRequest {
        try download(
            items: paths.map { .remote($0) }, from: account, to: folder, name: name, tags: tags, context: context, options: options)
    }
}
