public import Foundation
public import SystemPackage

/// A path on this machine: a `FilePath`, a `String`, or a file `URL`.
public protocol LocalPathConvertible: Sendable {
    /// The value as a path.
    var filePath: FilePath { get }
}

extension FilePath: LocalPathConvertible {
    /// The path itself.
    public var filePath: FilePath { self }
}

extension String: LocalPathConvertible {
    /// The text as a path.
    public var filePath: FilePath { FilePath(self) }
}

extension URL: LocalPathConvertible {
    /// The path of a file URL. For any other URL, the text of the whole URL, so that errors show it.
    public var filePath: FilePath {
        guard isFileURL else { return FilePath(absoluteString) }
        // The bytes of a path need not be UTF-8, so they can't be a string.
        var bytes: [UInt8] = []
        var rest = Array(path(percentEncoded: true).utf8)[...]
        while let byte = rest.popFirst() {
            let digits = byte == UInt8(ascii: "%") ? String(decoding: rest.prefix(2), as: UTF8.self) : ""
            guard let decoded = UInt8(digits, radix: 16) else {
                bytes.append(byte)
                continue
            }
            bytes.append(decoded)
            rest = rest.dropFirst(2)
        }
        return FilePath(bytes: bytes)
    }
}
