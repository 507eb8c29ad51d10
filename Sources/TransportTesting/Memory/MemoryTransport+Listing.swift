import Locking
public import TransferCore

extension MemoryTransport: FolderListing {
    /// Creates an empty remote folder. The parent folders of files exist without a call to this method.
    public func provideFolder(_ path: String) {
        state.withLock { _ = $0.store.folders.insert(path) }
    }

    /// Creates a remote symbolic link to the name of a file or folder.
    public func provideLink(_ path: String, to target: String) {
        state.withLock { $0.store.links[path] = target }
    }

    /// The listed folders, in the order in which their listings began.
    public var listings: [RemotePath] { state.withLock { $0.listings } }

    /// Lists a folder for downloads, sorted by name, in groups of a hundred entries.
    ///
    /// A gate for the folder's name, at byte 0, stops the listing before the first entry.
    ///
    /// - Throws: A ``/TransferCore/TransferError`` for scripted faults, a missing folder, a refusing host, or a rejected credential;
    ///   `CancellationError`; errors of the receiver.
    public func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
        let fault = faults.take(for: attempt.remotePath)
        let path = String(decoding: attempt.remotePath.bytes, as: UTF8.self)
        state.withLock { $0.listings.append(attempt.remotePath) }
        try await connect(to: attempt.endpoint, credentials: attempt.credentials)
        if case .fail(let error) = fault { throw error }
        try await pass(path, at: 0)
        guard let entries = state.withLock({ $0.store.entries(of: path, resolvesLinks: attempt.resolvesLinks) }) else {
            throw TransferError(.permanent, .noSuchRemoteFile, "There is no folder \(path) on the server.")
        }
        for start in stride(from: 0, to: entries.count, by: 100) {
            try Task.checkCancellation()
            if case .cut(let count) = fault, start >= count {
                throw TransferError(.transient, .connectionLost, "The connection broke during the listing of \(path).")
            }
            try await receive(Array(entries[start..<min(start + 100, entries.count)]))
        }
    }
}
