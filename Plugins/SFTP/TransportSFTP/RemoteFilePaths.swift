import Foundation
import TransferCore

/// The paths of a file and its part file on the server. Paths are arrays of bytes, because they need not be UTF-8.
struct RemoteFilePaths: Sendable {
    /// The URL of the server, without a path, such as `sftp://sftp.example.com`.
    let root: String
    /// Empty for the account's start folder.
    let folder: [UInt8]
    let path: RemotePath

    /// The path of the file. For the start folder itself, a dot, because OpenSSH does not open an empty path.
    var final: [UInt8] {
        let path = join(path.bytes)
        return path.isEmpty ? [UInt8(ascii: ".")] : path
    }

    func entry(_ name: [UInt8]) -> [UInt8] { final + [Self.slash] + name }

    var name: String { path.description }

    /// The folders below the endpoint's folder that contain the file, outermost first.
    var parents: [[UInt8]] {
        path.bytes.indices.filter { path.bytes[$0] == Self.slash }.map { join(Array(path.bytes[..<$0])) }
    }

    /// The part file is in the final folder, so that its rename can be atomic.
    ///
    /// - Throws: A `TransferError` if the ID can't be part of a file name.
    func partFile(of transferID: String) throws(TransferError) -> [UInt8] {
        guard transferID.utf8.allSatisfy({ Self.isSafe($0) }), (1...64).contains(transferID.utf8.count) else {
            throw TransferError(.permanent, .internalFailure, "The transfer of \(name) has an ID that can't be part of a file name.")
        }
        return sibling(Array(".tq-\(transferID).part".utf8))
    }

    /// Returns the final path with a number: for 1, `reel (1).mov` instead of `reel.mov`; for 0, the final path itself. The overwrite
    /// policy `rename` uses the first number whose path is free.
    func numbered(_ number: Int) -> [UInt8] {
        guard number > 0 else { return final }
        let name = path.lastComponent
        // The dot of a hidden file does not begin an extension.
        let dot = name.lastIndex(of: UInt8(ascii: ".")).flatMap { $0 > 0 ? $0 : nil } ?? name.endIndex
        let suffix = Array(" (\(number))".utf8) + name[dot...]
        // A name has at most 255 bytes (NAME_MAX, limits.h).
        return sibling(name[..<dot].prefix(max(1, 255 - suffix.count)) + suffix)
    }

    private func sibling(_ name: some Collection<UInt8>) -> [UInt8] {
        join(Array(path.bytes.dropLast(path.lastComponent.count)) + name)
    }

    private func join(_ relative: [UInt8]) -> [UInt8] {
        guard let last = folder.last else { return relative }
        return last == Self.slash ? folder + relative : folder + [Self.slash] + relative
    }

    static func isSafe(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"):
            true
        default: false
        }
    }

    private static let slash = UInt8(ascii: "/")
}
