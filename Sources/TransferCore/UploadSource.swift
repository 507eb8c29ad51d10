public import SystemPackage

/// A local file to send, and what it was when the queue looked.
public struct UploadSource: Hashable, Sendable {
    /// The file.
    public let path: FilePath

    /// What the file must still be when it is opened and after its last byte; a transport that finds it different throws an error of the
    /// class ``FailureClass/sourceChanged``.
    public let identity: SourceIdentity

    /// Set while the bytes still arrive in the file; nil for a file that is whole.
    ///
    /// The size in ``identity`` means nothing then, and the file is not compared with it.
    public let growth: SourceGrowth?

    /// Whether the file is the queue's own copy of bytes from memory, so that its permissions mean nothing to the other end. So is any source that
    /// grows.
    public let isSpooled: Bool

    /// Makes a source.
    public init(path: FilePath, identity: SourceIdentity, growth: SourceGrowth? = nil, isSpooled: Bool = false) {
        self.path = path
        self.identity = identity
        self.growth = growth
        self.isSpooled = isSpooled || growth != nil
    }

    /// The size in bytes of a file that is whole.
    public var size: Int64 { identity.size }
}
