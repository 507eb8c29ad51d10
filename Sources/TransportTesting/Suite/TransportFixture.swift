public import Foundation
public import SystemPackage
public import TransferCore

/// What the conformance suite needs to know of a transport and of a server for it. Written by the transport's author.
///
/// Each ``TransportPromise/verify(_:deadline:)`` takes a fixture of its own, whose server nobody else talks to.
public protocol TransportFixture: Sendable {
    /// The transport under test. The fixture's owner shuts it down.
    var transport: any Transport { get }

    /// An endpoint that works. If the transport can authenticate, it names a credential whose value ``credentials`` gives.
    var endpoint: Endpoint { get }

    /// An endpoint that refuses connections, with the same credentials.
    var unreachableEndpoint: Endpoint { get }

    /// Gives the secrets.
    var credentials: any CredentialProvider { get }

    /// The secrets in clear, which must turn up nowhere. They should be no words that an error could hold by chance.
    var secrets: [String] { get }

    /// An empty folder for sources, which the fixture's owner removes.
    var folder: FilePath { get }

    /// What every attempt asks for; the defaults if it is not said. With ``AttemptOptions/parallel`` above 1, and an endpoint that splits files of
    /// 3 MiB, the suite checks that files keep their promises in several parts, too.
    var options: AttemptOptions { get }

    /// What becomes of uploads that were interrupted; ``UploadResumption/fromCheckpoint`` if it is not said.
    var resumption: UploadResumption { get }

    /// What the other end has of a file, complete or not; nil if nothing. Called while no attempt for the file runs.
    func storedContent(of path: RemotePath) async throws -> Data?

    /// How many bytes the other end has of a file, complete or not; 0 if nothing. Called during attempts too.
    func storedSize(of path: RemotePath) async throws -> Int64

    /// Whether the other end has a file and takes it for complete.
    func isComplete(_ path: RemotePath) async throws -> Bool

    /// Makes the connection of the next attempt that brings so many bytes of content break after them, once. They are stored.
    func cut(afterBytes bytes: Int64) async throws
}

extension TransportFixture {
    /// The defaults.
    public var options: AttemptOptions { AttemptOptions() }

    /// Goes on from checkpoints.
    public var resumption: UploadResumption { .fromCheckpoint }

    /// The size of ``storedContent(of:)``.
    public func storedSize(of path: RemotePath) async throws -> Int64 {
        Int64(try await storedContent(of: path)?.count ?? 0)
    }
}
