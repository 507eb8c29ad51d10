import Foundation
import SystemPackage
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The identity of a member: a random ID in its storage folder.
enum MemberIdentity {
    private static let name = "fleet-member"

    /// Reads the identity, or creates one. The caller must own the storage folder.
    ///
    /// - Throws: ``/TransferKit/QueueError`` with the code `storageUnavailable`, whose message names the file, for example if the file is a
    ///   symbolic link.
    static func read(in folder: FilePath) async throws(QueueError) -> String {
        let path = folder.appending(name)
        return try await BlockingIO.run(.storage) { () throws(QueueError) -> String in
            let file = try StorageFolder.open(path, .readWrite, options: .create)
            defer { try? file.close() }
            do {
                if let id = try Self.stored(in: file) { return id.uuidString }
                let id = UUID()
                try Self.store(id, in: file)
                return id.uuidString
            } catch {
                throw QueueError(
                    .storageUnavailable, "Cannot read or write \(path): \(error). Check the disk of the storage folder.")
            }
        }
    }

    /// The ID in a file; nil for a new file, and for a file whose writer was killed.
    private static func stored(in file: FileDescriptor) throws -> UUID? {
        var bytes = [UInt8](repeating: 0, count: 64)
        let count = try unsafe bytes.withUnsafeMutableBytes { unsafe try file.read(fromAbsoluteOffset: 0, into: $0) }
        return UUID(uuidString: String(decoding: bytes.prefix(count), as: UTF8.self).trimmingCharacters(in: .newlines))
    }

    private static func store(_ id: UUID, in file: FileDescriptor) throws {
        try file.resize(to: 0)
        _ = try file.writeAll(toAbsoluteOffset: 0, "\(id.uuidString)\n".utf8)
        guard fsync(file.rawValue) == 0 else { throw Errno(rawValue: errno) }
    }
}
