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
        self.bytes = [UInt8](bytes)
        if let problem { throw .unsafeName("The remote name \"\(self)\" \(problem)") }
    }

    /// What is wrong with the bytes.
    private var problem: String? {
        let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
        guard !bytes.contains(0) else { return "holds a NUL byte." }
        guard bytes.first != slash else { return "is absolute; name it relative to the endpoint's folder." }
        var start = 0
        while true {
            let end = bytes[start...].firstIndex(of: slash) ?? bytes.count
            if end == start { return "has an empty component." }
            if end - start <= 2, bytes[start..<end].allSatisfy({ $0 == dot }) { return "has a component that is \".\" or \"..\"." }
            guard end < bytes.count else { return nil }
            start = end + 1
        }
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
