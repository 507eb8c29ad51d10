public import SystemPackage

/// A local file to upload, with the identity that the queue recorded for it.
public struct UploadSource: Hashable, Sendable {
    /// The path of the file. Open the file with ``open()``.
    public let path: FilePath

    /// The identity that the file must have when it is opened, and after its last byte was read. If the identity differs, throw an error of the
    /// class ``FailureClass/sourceChanged``.
    public let identity: SourceIdentity

    /// Which components of the path may be symbolic links; nil to follow all links.
    package let confinement: SourceConfinement?

    /// The state of a growing source; nil for a complete file.
    ///
    /// Ignore the ``identity`` of a growing source: neither use its size nor compare the file with it.
    public let growth: SourceGrowth?

    /// Whether the file is the queue's copy of bytes from memory or of a local file, or a growing source. A transport must not send the
    /// permissions of such a file. For a copy of a local file, the transport may send ``originalPermissions``.
    public let isSpooled: Bool

    /// The permissions of the local file of which this file is the queue's copy, without set-user-ID, set-group-ID and sticky bits. Nil if
    /// this file is not such a copy.
    public let originalPermissions: FilePermissions?

    /// Creates a source.
    public init(path: FilePath, identity: SourceIdentity, growth: SourceGrowth? = nil, isSpooled: Bool = false) {
        self.init(path: path, identity: identity, growth: growth, isSpooled: isSpooled, confinement: nil)
    }

    /// Creates a source that restricts which components of its path may be symbolic links, or a source for the queue's copy of a file.
    package init(
        path: FilePath, identity: SourceIdentity, growth: SourceGrowth? = nil, isSpooled: Bool = false,
        originalPermissions: FilePermissions? = nil, confinement: SourceConfinement?
    ) {
        self.path = path
        self.identity = identity
        self.growth = growth
        self.isSpooled = isSpooled || growth != nil
        self.originalPermissions = originalPermissions
        self.confinement = confinement
    }

    /// Opens the file for reading. Follows only the links that the session's policy allows. Blocks.
    ///
    /// Don't open ``path`` directly: another process may have created links since the queue read the folder.
    ///
    /// - Returns: A descriptor that the caller closes.
    /// - Throws: A ``TransferError`` of the class ``FailureClass/sourceLost``, or ``FailureClass/noSpace`` if this process has too many
    ///   open files.
    public func open() throws(TransferError) -> FileDescriptor { try SourceConfinement.open(path, within: confinement) }

    /// The size of a complete file in bytes.
    public var size: Int64 { identity.size }
}

/// Which components of a file's path may be symbolic links.
package struct SourceConfinement: Hashable, Sendable {
    /// The folder whose own path may contain links. The folders between this folder and the file must not be links.
    package var root: FilePath

    /// Whether the file itself may be a link.
    package var followsFile: Bool

    package init(root: FilePath, followsFile: Bool) {
        self.root = root
        self.followsFile = followsFile
    }

    /// Opens a file for reading. Blocks.
    ///
    /// - Parameter confinement: The allowed links; nil to follow all links.
    package static func open(_ path: FilePath, within confinement: SourceConfinement?) throws(TransferError) -> FileDescriptor {
        do throws(Errno) {
            guard let confinement else { return try ConfinedFolder.openForReading(path, FilePath()) }
            var name = path
            guard name.removePrefix(confinement.root), !name.isEmpty else { throw .invalidArgument }
            return try ConfinedFolder.openForReading(confinement.root, name, followsLast: confinement.followsFile)
        } catch {
            throw .sourceUnavailable(path, errno: error.rawValue)
        }
    }
}
