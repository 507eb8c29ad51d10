package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The rules for verifying the identity of a server.
package struct HostKeyPolicy: Hashable, Sendable {
    /// The keys to trust.
    package enum Trust: Hashable, Sendable {
        /// The keys in the known hosts files.
        case strict
        /// Like ``strict``. In addition, the client trusts a server without a known key of any type, and adds its key to
        /// ``HostKeyPolicy/userFile``.
        case acceptNew
        /// Only keys with one of these fingerprints: `SHA256:` and Base64, as `ssh-keygen -l` shows them. The client ignores the files.
        case pinned([String])
    }

    /// The keys to trust.
    package var trust = Trust.strict
    /// The user's file. With ``Trust/acceptNew``, the client adds unknown servers to this file; if it is nil, the client rejects them.
    package var userFile: FilePath?
    /// Additional files, which the client never changes: the user's second file, and the system's files.
    package var systemFiles: [FilePath]

    /// Creates a policy with OpenSSH's files (ssh(1), FILES).
    package init(trust: Trust = .strict) {
        self.trust = trust
        userFile = Self.defaultUserFile
        systemFiles = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"]
        if let userFile { systemFiles.insert(userFile.removingLastComponent().appending("known_hosts2"), at: 0) }
    }

    /// Creates a policy with the given files.
    package init(trust: Trust = .strict, userFile: FilePath?, systemFiles: [FilePath] = []) {
        self.trust = trust
        self.userFile = userFile
        self.systemFiles = systemFiles
    }

    private static var defaultUserFile: FilePath? {
        guard let home = unsafe getenv("HOME"), unsafe home.pointee != 0 else { return nil }
        return FilePath(unsafe String(cString: home)).appending(".ssh/known_hosts")
    }
}
