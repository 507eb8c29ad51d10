/// A name below an endpoint's folder: one or more components, none of which can leave it.
///
/// Names are bytes, as they are on the file systems at both ends; UTF-8 is neither required nor normalised.
public struct RemotePath: Hashable, Sendable, CustomStringConvertible {
    /// The path's bytes, components separated by `/`, with neither a leading nor a trailing one.
    public let bytes: [UInt8]

    /// Checks and takes a path.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/permanent`` if the path is empty, absolute, holds a NUL, or has a component
    ///   that is empty, `.` or `..`.
    public init(bytes: some Collection<UInt8>) throws(TransferError) {
        let bytes = [UInt8](bytes)
        let shown = String(decoding: bytes, as: UTF8.self)
        guard !bytes.contains(0) else {
            throw .unsafeName("The remote name \"\(shown)\" holds a NUL byte.")
        }
        guard bytes.first != UInt8(ascii: "/") else {
            throw .unsafeName("The remote name \"\(shown)\" is absolute; name it relative to the endpoint's folder.")
        }
        for component in bytes.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
            switch String(decoding: component, as: UTF8.self) {
            case "": throw .unsafeName("The remote name \"\(shown)\" has an empty component.")
            case ".", "..": throw .unsafeName("The remote name \"\(shown)\" has a component that is \".\" or \"..\".")
            default: continue
            }
        }
        self.bytes = bytes
    }

    /// Checks and takes a path given as text.
    ///
    /// - Throws: As ``init(bytes:)``.
    public init(_ path: String) throws(TransferError) {
        try self.init(bytes: path.utf8)
    }

    /// The last component's bytes: the file's own name.
    public var lastComponent: [UInt8] {
        [UInt8](bytes.split(separator: UInt8(ascii: "/")).last ?? [])
    }

    /// The path as text; bytes that are not UTF-8 are shown as U+FFFD.
    public var description: String { String(decoding: bytes, as: UTF8.self) }
}
