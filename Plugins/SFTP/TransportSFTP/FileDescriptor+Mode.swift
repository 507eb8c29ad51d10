import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension FileDescriptor {
    /// The mode bits to copy: the permissions, without setuid, setgid and sticky bits (inode(7)).
    private static let copiedBits: UInt32 = 0o777

    /// Returns nil if the system does not report the permissions.
    var mode: UInt32? {
        (try? stat()).map { UInt32($0.permissions.rawValue) & Self.copiedBits }
    }

    /// - Returns: Whether the system allowed the change.
    func change(mode: UInt32) -> Bool {
        fchmod(rawValue, mode_t(mode & Self.copiedBits)) == 0
    }

    /// The permissions that the owner needs to open a part file again.
    private static let ownerBits: UInt32 = 0o600

    /// Sets the permissions of a complete part file, and also lets the owner read and write it. The next attempt must be able to open the file
    /// if this process is killed before the rename.
    ///
    /// - Returns: Whether the system allowed the change.
    func changePartFile(mode: UInt32) -> Bool { change(mode: mode | Self.ownerBits) }

    /// Removes the owner's permissions that ``changePartFile(mode:)`` added. Does not change a file whose permissions have changed since then.
    ///
    /// - Parameter mode: The same value as for ``changePartFile(mode:)``.
    /// - Returns: Whether the system allowed the change, or no change was needed.
    func removeAddedPermissions(mode: UInt32) -> Bool {
        let final = mode & Self.copiedBits
        let withAdded = final | Self.ownerBits
        return final == withAdded || self.mode != withAdded || change(mode: final)
    }
}
