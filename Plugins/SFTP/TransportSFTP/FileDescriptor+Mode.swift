import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension FileDescriptor {
    /// The mode bits to copy: the permissions, without setuid, setgid and sticky bits (inode(7)).
    private static let copiedBits: UInt32 = 0o777

    /// The permissions of an open file; nil if the system does not report them.
    var mode: UInt32? {
        (try? stat()).map { UInt32($0.permissions.rawValue) & Self.copiedBits }
    }

    /// Sets the permissions of an open file.
    ///
    /// - Returns: Whether the system allowed it.
    func change(mode: UInt32) -> Bool {
        fchmod(rawValue, mode_t(mode & Self.copiedBits)) == 0
    }
}
