import Locking

/// The permissions that a server gives to new files in its folders, which depend on its umask and on access lists: learned from the first file.
final class NewFileModes: Sendable {
    struct Key: Hashable {
        let folder: [UInt8]
        /// The permissions that a file is created with, as a client asks for them.
        let asked: UInt32
    }

    /// The permissions of a part that is not complete. The account can write it, to resume.
    static let hidden: UInt32 = 0o600
    private static let mostKeys = 1_000
    private let modes = Locked<[Key: UInt32]>([:])

    /// Whether a part can be created hidden, as its final permissions are known.
    func isKnown(_ key: Key) -> Bool { known(key) != nil }

    private func known(_ key: Key) -> UInt32? {
        // A umask leaves the account's own permissions alone.
        key.asked & ~Self.hidden == 0 ? key.asked : modes.withLock { $0[key] }
    }

    /// Hides a new part, unless it was created so.
    ///
    /// - Returns: The permissions that the part gets when it is complete; nil if they stay.
    /// - Throws: A `TransferError` or `CancellationError`.
    func mode(of handle: Handle, _ key: Key, isHidden: Bool, at client: SFTPClient) async throws -> UInt32? {
        if isHidden { return known(key).flatMap { $0 == Self.hidden ? nil : $0 } }
        guard case .attributes(let found) = try await client.answer(to: .fstat(handle)), let permissions = found.permissions else {
            return nil
        }
        // Never more than was asked for.
        let mode = permissions & key.asked
        // Not awaited: the server gets it before the first byte, and answers in order.
        client.submit(.fsetstat(handle, .permissions(Self.hidden))) { [self] result in
            guard case .success(.status(let status)) = result, status.code == .ok else { return }
            modes.withLock { if $0.count < Self.mostKeys { $0[key] = mode } }
        }
        return mode
    }
}
