import Foundation
import SystemPackage
import TransferKit

/// The identity of a member: a random ID in its storage folder.
enum MemberIdentity {
    private static let name = "fleet-member"

    /// Reads the identity, or creates one. The caller must own the storage folder.
    static func read(in folder: FilePath) async throws -> String {
        try await BlockingIO.run(.storage) {
            let path = folder.appending(name).string
            if let text = try? String(contentsOfFile: path, encoding: .utf8),
                let id = UUID(uuidString: text.trimmingCharacters(in: .newlines))
            {
                return id.uuidString
            }
            let id = UUID().uuidString
            do {
                try Data("\(id)\n".utf8).write(to: URL(filePath: path), options: .atomic)
            } catch {
                throw QueueError(.storageUnavailable, "Cannot write \(path). \(error.localizedDescription)")
            }
            return id
        }
    }
}
