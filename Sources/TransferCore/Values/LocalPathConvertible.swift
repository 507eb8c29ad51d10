public import Foundation
public import SystemPackage

/// A path on this machine: a `FilePath`, a `String`, or a file `URL`.
public protocol LocalPathConvertible: Sendable {
    /// The path.
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
    /// The path of a file URL. The path of any other URL is its whole text, so that errors show it.
    public var filePath: FilePath { FilePath(isFileURL ? path(percentEncoded: false) : absoluteString) }
}
