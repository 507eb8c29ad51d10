public import Foundation
import Locking
public import TransferCore

extension MemoryTransport {
    /// The content of a complete file, the latest of that name; nil if none is complete.
    ///
    /// - Parameter address: The address of the endpoint that it was sent to, or nil for any.
    public func contents(of path: String, at address: String? = nil) -> Data? {
        state.withLock { $0.store.latest(path, at: address, where: \.isComplete)?.content }
    }

    /// What the latest upload of a name has, complete or not; nil if there is none.
    public func partialContents(of path: String, at address: String? = nil) -> Data? {
        state.withLock { $0.store.latest(path, at: address)?.content }
    }

    /// The names of the complete files, in the order in which their uploads were made; a name that was sent twice comes twice.
    public var completePaths: [RemotePath] {
        state.withLock { $0.store.completePaths }
    }

    /// How many uploads are not complete: what discarding has to bring to 0.
    public var partialCount: Int {
        state.withLock { $0.store.uploads.values.count { !$0.isComplete } }
    }
}

extension MemoryTransport: PartialDiscarding {
    /// Forgets what there is of an unfinished upload.
    ///
    /// - Throws: As an attempt, if the host refuses the connection or the credentials.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        try await connect(to: endpoint, credentials: credentials)
        state.withLock { $0.store.discard(String(decoding: checkpoint.data, as: UTF8.self)) }
    }
}

extension MemoryTransport: EndpointChecking {
    /// Looks whether an endpoint's host accepts the connection and the credentials.
    ///
    /// - Throws: What an attempt would throw.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        let duration = try await ContinuousClock().measure { try await connect(to: endpoint, credentials: credentials) }
        return EndpointReport(version: "1", latency: duration)
    }
}
