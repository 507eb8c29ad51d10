import Locking

/// The permissions that a server gives to new files, by folder. The client learns them from the first file, because they depend on the
/// server's umask and access lists.
final class NewFileModes: Sendable {
    struct Key: Hashable {
        let folder: [UInt8]
        /// The permissions that the client requests for new files.
        let requested: UInt32
    }

    /// The permissions that hide an incomplete part file. The account needs the write permission to resume the upload.
    static let hidden: UInt32 = 0o600
    private static let maximumKeys = 1_000
    private let modes = Locked<[Key: UInt32]>([:])

    /// Whether the final permissions are known, so that the client can create the part file hidden.
    func isKnown(_ key: Key) -> Bool { known(key) != nil }

    private func known(_ key: Key) -> UInt32? {
        // A typical umask does not remove the owner's permissions.
        key.requested & ~Self.hidden == 0 ? key.requested : modes.withLock { $0[key] }
    }

    /// Hides a new part file from other users. If `isHidden`, the part file already is hidden.
    ///
    /// - Returns: The permissions to set when the part file is complete; nil to keep its permissions.
    /// - Throws: A `TransferError` or `CancellationError`.
    func hide(_ handle: Handle, _ key: Key, isHidden: Bool, at client: SFTPClient) async throws -> UInt32? {
        if isHidden { return known(key).flatMap { $0 == Self.hidden ? nil : $0 } }
        guard case .attributes(let found) = try await client.response(to: .fstat(handle)), let permissions = found.permissions else {
            return nil
        }
        let mode = permissions & key.requested
        // Servers process the requests for one handle in order, so this one takes effect before the first byte arrives.
        client.submit(.fsetstat(handle, .permissions(Self.hidden))) { [self] result in
            guard case .success(.status(let status)) = result, status.code == .ok else { return }
            modes.withLock { if $0.count < Self.maximumKeys { $0[key] = mode } }
        }
        return mode
    }
}
