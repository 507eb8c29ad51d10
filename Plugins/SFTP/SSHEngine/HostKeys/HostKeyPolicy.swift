package import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// How a server has to prove who it is.
package struct HostKeyPolicy: Hashable, Sendable {
    /// What counts as known.
    package enum Trust: Hashable, Sendable {
        /// What the files of known hosts say.
        case strict
        /// As ``strict``; and a server that none of the files knows by any key is taken at its word, and added to ``HostKeyPolicy/userFile``.
        case acceptNew
        /// A key with one of these fingerprints, `SHA256:` and base64 as `ssh-keygen -l` shows it. The files don't count.
        case pinned([String])
    }

    /// What counts as known.
    package var trust = Trust.strict
    /// Where new servers are added; nil if they can't be.
    package var userFile: FilePath?
    /// Files that are only read: the user's second one, and those for all users of this machine.
    package var systemFiles: [FilePath]

    /// Makes a policy with the files that OpenSSH reads (ssh(1), FILES).
    package init(trust: Trust = .strict) {
        self.trust = trust
        userFile = Self.defaultUserFile
        systemFiles = ["/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"]
        if let userFile { systemFiles.insert(userFile.removingLastComponent().appending("known_hosts2"), at: 0) }
    }

    /// Makes a policy with files of the caller's choice.
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
