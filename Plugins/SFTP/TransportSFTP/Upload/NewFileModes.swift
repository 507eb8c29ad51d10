import Locking

/// The permissions that a server gives to new files, by folder. They depend on the server's umask and on access lists, so the client learns
/// them from the first file.
final class NewFileModes: Sendable {
    struct Key: Hashable {
        let folder: [UInt8]
        /// The permissions that the client requests for a file.
        let requested: UInt32
    }

    /// The permissions that hide an incomplete part file from other users. They include write permission, which the account needs to resume
    /// the upload.
    static let hidden: UInt32 = 0o600
    private static let maximumKeys = 1_000
    private let modes = Locked<[Key: UInt32]>([:])

    /// Returns whether a file's final permissions are known. If so, the client can create the part file with permissions that hide it from
    /// other users.
    func isKnown(_ key: Key) -> Bool { known(key) != nil }

    private func known(_ key: Key) -> UInt32? {
        // If the client requests only permissions for the owner, the file gets exactly these, because a typical umask does not remove them.
        key.requested & ~Self.hidden == 0 ? key.requested : modes.withLock { $0[key] }
    }

    /// Hides a new part file from other users, unless the file is already hidden.
    ///
    /// - Returns: The permissions to set when the part file is complete; nil to keep its permissions.
    /// - Throws: A `TransferError` or `CancellationError`.
    func hide(_ handle: Handle, _ key: Key, isHidden: Bool, at client: SFTPClient) async throws -> UInt32? {
        if isHidden { return known(key).flatMap { $0 == Self.hidden ? nil : $0 } }
        guard case .attributes(let found) = try await client.response(to: .fstat(handle)), let permissions = found.permissions else {
            return nil
        }
        // Excludes permissions that the client did not request.
        let mode = permissions & key.requested
        // Does not wait for the response. The server receives this request before the first byte, and processes requests in order.
        client.submit(.fsetstat(handle, .permissions(Self.hidden))) { [self] result in
            guard case .success(.status(let status)) = result, status.code == .ok else { return }
            modes.withLock { if $0.count < Self.maximumKeys { $0[key] = mode } }
        }
        return mode
    }
}
