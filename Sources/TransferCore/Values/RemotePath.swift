/// A relative path that can't lead outside of an endpoint's folder.
///
/// Names are bytes, as on the file systems of both ends. They can be invalid UTF-8, and are not normalized.
public struct RemotePath: Hashable, Sendable, CustomStringConvertible {
    /// The path's bytes: components separated by `/`, without a leading or trailing slash. Empty only for ``endpointFolder``.
    public let bytes: [UInt8]

    /// The endpoint's folder itself. Only a transport that lists folders receives this path, and only to list the folder.
    public static let endpointFolder = RemotePath()

    /// Whether the path is ``endpointFolder``.
    public var isEndpointFolder: Bool { bytes.isEmpty }

    private init() { bytes = [] }

    /// Creates the path of a folder from bytes; ``endpointFolder`` if there are no bytes.
    ///
    /// - Throws: The same errors as ``init(bytes:)``.
    package static func folder(bytes: some Collection<UInt8>) throws(TransferError) -> RemotePath {
        bytes.isEmpty ? .endpointFolder : try RemotePath(bytes: bytes)
    }

    /// Creates a path from bytes.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/permanent`` if the path is empty or absolute, contains a NUL, or has a component
    ///   that is empty, `.` or `..`.
    public init(bytes: some Collection<UInt8>) throws(TransferError) {
        self.bytes = [UInt8](bytes)
        // The description of an empty path is a slash.
        if let problem { throw .unsafeName("The remote name \"\(self.bytes.isEmpty ? "" : description)\" \(problem)") }
    }

    private var problem: String? {
        let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
        guard !bytes.isEmpty else { return "is empty." }
        guard !bytes.contains(0) else { return "contains a NUL byte." }
        guard bytes.first != slash else { return "is absolute. Use a path relative to the endpoint's folder." }
        var start = 0
        while true {
            let end = bytes[start...].firstIndex(of: slash) ?? bytes.count
            if end == start { return "has an empty component." }
            if end - start <= 2, bytes[start..<end].allSatisfy({ $0 == dot }) { return "has a component that is \".\" or \"..\"." }
            guard end < bytes.count else { return nil }
            start = end + 1
        }
    }

    /// Creates a path from text.
    ///
    /// - Throws: The same errors as ``init(bytes:)``.
    public init(_ path: String) throws(TransferError) {
        try self.init(bytes: path.utf8)
    }

    /// The bytes of the last component, which is the file's name.
    public var lastComponent: [UInt8] {
        [UInt8](bytes.split(separator: UInt8(ascii: "/")).last ?? [])
    }

    /// The path as text. Invalid UTF-8 is replaced with U+FFFD. For ``endpointFolder``, a slash.
    public var description: String { isEndpointFolder ? "/" : String(decoding: bytes, as: UTF8.self) }
}

/// A name below an endpoint's folder: a ``RemotePath``, or a `String`, which is checked when it is used.
public protocol RemotePathConvertible: Sendable {
    /// Returns the name as a path.
    ///
    /// - Throws: The errors of ``RemotePath/init(_:)``.
    func remotePath() throws(TransferError) -> RemotePath
    /// The name as text, for errors.
    var description: String { get }
}

extension RemotePath: RemotePathConvertible {
    /// The path itself.
    public func remotePath() -> RemotePath { self }
}

extension String: RemotePathConvertible {
    /// The text as a path.
    public func remotePath() throws(TransferError) -> RemotePath { try RemotePath(self) }
}
