public import Foundation
import Locking
public import TransferCore

extension MemoryTransport {
    /// Returns the content of the latest complete file with a name; nil if there is no complete file.
    ///
    /// - Parameters:
    ///   - path: The remote name of the file.
    ///   - address: The address of the file's endpoint, or nil for any endpoint.
    public func contents(of path: String, at address: String? = nil) -> Data? {
        state.withLock { $0.store.latest(path, at: address, where: \.isComplete)?.content }
    }

    /// Returns the content of the latest upload with a name, complete or partial; nil if there is no such upload.
    public func partialContents(of path: String, at address: String? = nil) -> Data? {
        state.withLock { $0.store.latest(path, at: address)?.content }
    }

    /// The names of the complete files, in the order in which their uploads were created. A name that was sent twice occurs twice.
    public var completePaths: [RemotePath] {
        state.withLock { $0.store.completePaths }
    }

    /// The number of incomplete uploads at the other end. Uploads that ``discard(_:at:credentials:)`` removed are not included.
    public var partialCount: Int {
        state.withLock { $0.store.uploads.values.count { !$0.isComplete } }
    }
}

extension MemoryTransport: PartialDiscarding {
    /// Removes an unfinished upload.
    ///
    /// - Throws: The same error as an attempt, if the host refuses the connection or rejects the credentials.
    public func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        try await connect(to: endpoint, credentials: credentials)
        state.withLock { $0.store.discard(String(decoding: checkpoint.data, as: UTF8.self)) }
    }
}

extension MemoryTransport: EndpointChecking {
    /// Checks whether an endpoint's host accepts the connection and the credentials.
    ///
    /// - Throws: The same errors as an attempt that can't connect.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        let duration = try await ContinuousClock().measure { try await connect(to: endpoint, credentials: credentials) }
        return EndpointReport(version: "1", latency: duration)
    }
}
