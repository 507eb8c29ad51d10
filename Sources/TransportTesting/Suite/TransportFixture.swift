public import Foundation
public import SystemPackage
public import TransferCore

/// A transport under test, with its server. The author of a transport implements this protocol in order to run the conformance suite.
///
/// Create a new fixture, with a server that has no other clients, for each call of ``TransportPromise/verify(_:deadline:)``.
public protocol TransportFixture: Sendable {
    /// The transport under test. The suite does not shut down the transport.
    var transport: any Transport { get }

    /// A working endpoint. If the transport can authenticate, the endpoint refers to a credential that ``credentials`` reads.
    var endpoint: Endpoint { get }

    /// An endpoint that refuses connections, with the same credentials.
    var unreachableEndpoint: Endpoint { get }

    /// The provider from which the transport reads the secrets.
    var credentials: any CredentialProvider { get }

    /// The values of the secrets, which must not appear in errors, receipts and checkpoints. Choose values that an error can't contain by chance.
    var secrets: [String] { get }

    /// An empty folder for local files. The suite does not remove the folder.
    var folder: FilePath { get }

    /// The options of every attempt; by default, the defaults of ``/TransferCore/AttemptOptions``.
    ///
    /// To test segmented transfers, set ``/TransferCore/AttemptOptions/segmentsPerFile`` to more than 1, and use an endpoint that splits
    /// files of 3 MiB.
    var options: AttemptOptions { get }

    /// The behaviour of interrupted uploads; ``UploadResumption/fromCheckpoint`` by default.
    var resumption: UploadResumption { get }

    /// Returns the remote content of a file, complete or partial; nil if there is no content. Called while no attempt for the file is running.
    func storedContent(of path: RemotePath) async throws -> Data?

    /// Returns the size in bytes of a complete or partial remote file; 0 if the file does not exist. The suite also calls this method during
    /// attempts.
    func storedSize(of path: RemotePath) async throws -> Int64

    /// Returns whether the other end has a file and considers the file complete.
    func isComplete(_ path: RemotePath) async throws -> Bool

    /// Breaks the connection of the next attempt that transfers at least `bytes` bytes, right after the last of these bytes. The server must
    /// have stored the bytes before the connection breaks. Later attempts are not affected.
    func cut(afterBytes bytes: Int64) async throws
}

extension TransportFixture {
    /// The default options.
    public var options: AttemptOptions { AttemptOptions() }

    /// The default: uploads resume from checkpoints.
    public var resumption: UploadResumption { .fromCheckpoint }

    /// Returns the size of ``storedContent(of:)``.
    public func storedSize(of path: RemotePath) async throws -> Int64 {
        Int64(try await storedContent(of: path)?.count ?? 0)
    }
}
