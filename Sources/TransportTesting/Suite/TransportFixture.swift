public import Foundation
public import SystemPackage
public import TransferCore

/// A transport and its server, for the conformance suite. Implemented by the author of the transport.
///
/// Create a fixture for each ``TransportPromise/verify(_:deadline:)``, with a server that has no other clients.
public protocol TransportFixture: Sendable {
    /// The transport under test. The fixture's owner shuts it down.
    var transport: any Transport { get }

    /// A working endpoint. If the transport can authenticate, it refers to a credential that ``credentials`` reads.
    var endpoint: Endpoint { get }

    /// An endpoint that refuses connections, with the same credentials.
    var unreachableEndpoint: Endpoint { get }

    /// Reads the secrets.
    var credentials: any CredentialProvider { get }

    /// The values of the secrets, which must not appear anywhere. Choose values that an error does not contain by chance.
    var secrets: [String] { get }

    /// An empty folder for sources. The fixture's owner removes it.
    var folder: FilePath { get }

    /// The options of every attempt. Default options if not implemented.
    ///
    /// With ``AttemptOptions/parallel`` above 1, and an endpoint that splits files of 3 MiB, the suite also checks files in several segments.
    var options: AttemptOptions { get }

    /// The behaviour of interrupted uploads. ``UploadResumption/fromCheckpoint`` if not implemented.
    var resumption: UploadResumption { get }

    /// Returns the remote content of a file, complete or not, or nil. Called while no attempt for the file runs.
    func storedContent(of path: RemotePath) async throws -> Data?

    /// Returns the remote size of a file in bytes, complete or not, or 0. Also called during attempts.
    func storedSize(of path: RemotePath) async throws -> Int64

    /// Returns whether the other end has a file and considers it complete.
    func isComplete(_ path: RemotePath) async throws -> Bool

    /// Breaks the connection of the next attempt that transfers a number of bytes, after these bytes, once. The server stores them.
    func cut(afterBytes bytes: Int64) async throws
}

extension TransportFixture {
    /// Default options.
    public var options: AttemptOptions { AttemptOptions() }

    /// Uploads resume from checkpoints.
    public var resumption: UploadResumption { .fromCheckpoint }

    /// The size of ``storedContent(of:)``.
    public func storedSize(of path: RemotePath) async throws -> Int64 {
        Int64(try await storedContent(of: path)?.count ?? 0)
    }
}
