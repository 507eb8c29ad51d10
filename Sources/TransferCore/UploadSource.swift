public import SystemPackage

/// A local file to send, and what it was when the queue looked.
public struct UploadSource: Hashable, Sendable {
    /// The file.
    public let path: FilePath

    /// What the file must still be when it is opened and after its last byte; a transport that finds it different throws an error of the
    /// class ``FailureClass/sourceChanged``.
    public let identity: SourceIdentity

    /// The folder that the file was found in, and which links may lead to it; nil for a file that an app named itself.
    package let confinement: SourceConfinement?

    /// Set while the bytes still arrive in the file; nil for a file that is whole.
    ///
    /// The size in ``identity`` means nothing then, and the file is not compared with it.
    public let growth: SourceGrowth?

    /// Whether the file is the queue's own copy of bytes from memory, so that its permissions mean nothing to the other end. So is any source that
    /// grows.
    public let isSpooled: Bool

    /// Makes a source.
    public init(path: FilePath, identity: SourceIdentity, growth: SourceGrowth? = nil, isSpooled: Bool = false) {
        self.init(path: path, identity: identity, growth: growth, isSpooled: isSpooled, confinement: nil)
    }

    /// Makes a source that was found in a folder.
    package init(
        path: FilePath, identity: SourceIdentity, growth: SourceGrowth? = nil, isSpooled: Bool = false, confinement: SourceConfinement?
    ) {
        self.path = path
        self.identity = identity
        self.growth = growth
        self.isSpooled = isSpooled || growth != nil
        self.confinement = confinement
    }

    /// Opens the file for reading, by no symbolic link that the queue would not follow. Blocks.
    ///
    /// Transports use this instead of opening ``path``, as links may have been put in the way since the queue looked.
    ///
    /// - Returns: A descriptor that the caller closes.
    /// - Throws: A ``TransferError`` of the class ``FailureClass/sourceLost``.
    public func open() throws(TransferError) -> FileDescriptor { try SourceConfinement.open(path, within: confinement) }

    /// The size in bytes of a file that is whole.
    public var size: Int64 { identity.size }
}

/// Where a file was found, and which symbolic links may lead to it from there.
package struct SourceConfinement: Hashable, Sendable {
    /// The folder that a person or an app named.
    package var root: FilePath

    /// Whether the file itself may be a link. No folder below the root ever is.
    package var followsFile: Bool

    package init(root: FilePath, followsFile: Bool) {
        self.root = root
        self.followsFile = followsFile
    }

    /// Opens a file for reading. Blocks.
    ///
    /// - Parameter confinement: Nil to follow all links.
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
