package import Foundation
import Locking

/// A secret in the memory of this process, to which an account refers. ``CredentialReference/Source/value(_:)`` creates one.
///
/// Only a random ID is stored and encoded. The secret stays in memory as long as a value of this type or an account of an open queue refers to it.
public struct MemorySecret: Hashable, Sendable {
    private final class Content: Sendable {
        let id: UUID
        let secret: Secret

        init(_ id: UUID, _ secret: Secret) {
            (self.id, self.secret) = (id, secret)
        }

        deinit {
            MemorySecret.contents.withLock { contents in
                // No other content has the same ID, because IDs are random.
                contents[id] = nil
            }
        }
    }

    private struct WeakContent: Sendable {
        weak let content: Content?
    }

    private static let contents = Locked<[UUID: WeakContent]>([:])

    /// Identifies the secret in the storage folder and for other processes.
    package let id: UUID
    private let content: Content?

    /// The secret; nil if it was in the memory of a process that has ended, or of another process.
    public var secret: Secret? { content?.secret }

    init(_ secret: Secret) {
        let content = Content(UUID(), secret)
        id = content.id
        self.content = content
        Self.contents.withLock { $0[content.id] = WeakContent(content: content) }
    }

    /// Compares the IDs, not the secrets.
    public static func == (first: MemorySecret, second: MemorySecret) -> Bool {
        first.id == second.id
    }

    /// Hashes the ID, not the secret.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(id)
    }
}

extension MemorySecret: Codable {
    /// Decodes an ID, and finds the secret if it is in the memory of this process.
    public init(from decoder: any Decoder) throws {
        let id = try decoder.singleValueContainer().decode(UUID.self)
        self.id = id
        content = Self.contents.withLock { $0[id]?.content }
    }

    /// Encodes the ID, not the secret.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(id)
    }
}
