import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension FileDescriptor {
    /// Which permissions go from one end to the other: none that let a program run as another user (inode(7)).
    private static let sharedMode: UInt32 = 0o777

    /// The permissions of an open file; nil if the system does not tell.
    var mode: UInt32? {
        (try? stat()).map { UInt32($0.permissions.rawValue) & Self.sharedMode }
    }

    /// Gives an open file these permissions.
    ///
    /// - Returns: Whether the system let that be.
    func change(mode: UInt32) -> Bool {
        fchmod(rawValue, mode_t(mode & Self.sharedMode)) == 0
    }
}
