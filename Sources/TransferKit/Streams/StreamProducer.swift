import Foundation
import TransferCore

/// What an app's stream is made of: something that hands over one chunk after the other, once. Equal only to itself.
package final class StreamProducer: Sendable {
    typealias Write = @Sendable (Data) async throws -> Void

    /// How many bytes there will be; nil if the app does not know.
    let length: Int64?
    /// How many bytes may be on the disk that the other end has not confirmed.
    let ahead: Int64
    private let body: @Sendable (Write) async throws -> Void
    private let refusal: @Sendable (any Error) -> Void
    private let isClaimed = Locked(false)

    /// - Parameters:
    ///   - refusal: Told when nobody reads any more.
    ///   - body: Hands the chunks over, in order; returns after the last.
    init(
        length: Int64?, ahead: Int64, refusal: @escaping @Sendable (any Error) -> Void = { _ in },
        body: @escaping @Sendable (_ write: Write) async throws -> Void
    ) {
        self.length = length
        self.ahead = max(1, ahead)
        self.refusal = refusal
        self.body = body
    }

    /// - Returns: Whether nobody else has it: a stream can be read once.
    func claim() -> Bool {
        isClaimed.withLock { isClaimed in
            defer { isClaimed = true }
            return !isClaimed
        }
    }

    /// Nothing was read, and somebody else may.
    func unclaim() {
        isClaimed.withLock { $0 = false }
    }

    func produce(_ write: Write) async throws {
        try await body(write)
    }

    func refuse(_ error: any Error) {
        refusal(error)
    }
}

extension StreamProducer: Hashable {
    package static func == (left: StreamProducer, right: StreamProducer) -> Bool { left === right }

    package func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
