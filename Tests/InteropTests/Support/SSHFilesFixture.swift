import Foundation
import Glibc
import Locking
import SSHFixture
import SystemPackage
import TransferCore
import TransportSFTP
import TransportTesting

/// A fixture for a folder on an OpenSSH server, reached through a relay that breaks connections.
final class SSHFilesFixture: DownloadingFixture {
    private struct Credentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret("hunter2-correct-horse") }
    }

    let transport: any Transport = SFTPTransport()
    let endpoint: Endpoint
    let unreachableEndpoint: Endpoint
    let credentials: any CredentialProvider = Credentials()
    let secrets = ["hunter2-correct-horse"]
    let folder: FilePath
    let options: AttemptOptions
    let relay: CuttingRelay

    /// The server that all tests share; each test has its own relay. The server exits with the test process.
    private static let server = Task { try await SSHServerProcess.start() }

    private let interop: InteropFixture
    let files: URL
    private let direction: CuttingRelay.Direction
    private let versions = Locked(0)
    private let wasCut = Locked(false)

    /// - Parameter direction: The direction whose bytes ``cut(afterBytes:)`` counts.
    init(cutting direction: CuttingRelay.Direction, options: AttemptOptions = AttemptOptions()) async throws {
        self.direction = direction
        self.options = options
        interop = try InteropFixture()
        let server = try await Self.server.value
        relay = try CuttingRelay(to: Int(server.port))
        files = interop.folder.appending(path: "server")
        folder = FilePath(interop.folder.appending(path: "local").path)
        for url in [files, interop.folder.appending(path: "local")] {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }
        let settings = [
            "identity": server.userKey, "agent": "none", "knownHosts": try server.knownHosts([.ed25519], port: relay.port),
            "parallelThreshold": "100000", "maxConnections": "4",
        ]
        endpoint = Endpoint(
            transport: .sftp, address: "sftp://\(server.user)@127.0.0.1:\(relay.port)\(files.path)/",
            credentials: [.password(.environment("PASSWORD"))], settings: settings)
        // No process listens on port 1 (tcpmux).
        unreachableEndpoint = Endpoint(
            transport: .sftp, address: "sftp://\(server.user)@127.0.0.1:1\(files.path)/",
            credentials: [.password(.environment("PASSWORD"))], settings: settings)
    }

    func close() async {
        await transport.shutdown()
        relay.stop()
    }

    // MARK: Requirements of the conformance suite

    /// The path of the complete file, or of its part file if the upload is incomplete; nil if neither exists.
    private func file(_ path: RemotePath) async throws -> FilePath? {
        let final = FilePath(bytes: FilePath(files.path).bytes + [UInt8(ascii: "/")] + path.bytes)
        if Self.exists(final) { return final }
        let transferID = "conformance-\(path.bytes.reduce(UInt64(5381)) { $0 &* 33 &+ UInt64($1) })"
        let partFile = FilePath(files.path).appending(".tq-\(transferID).part")
        try await waitUntilClosed(partFile)
        return Self.exists(partFile) ? partFile : nil
    }

    /// Waits until the server has closed the file. After a connection breaks, the server continues to process the bytes that it received.
    private func waitUntilClosed(_ file: FilePath) async throws {
        guard wasCut.withLock({ $0 }) else { return }
        try await SSHServerProcess.runBlocking {
            while Self.isOpenElsewhere(file) { usleep(5_000) }
        }
        wasCut.withLock { $0 = false }
    }

    /// Whether another process has a file open. Tries to take a lease (fcntl(2), "Leases"), which a file's owner is allowed to do. The
    /// alternative, a search in `/proc`, would require root, because the process of an OpenSSH server is not dumpable.
    private static func isOpenElsewhere(_ path: FilePath) -> Bool {
        guard let file = try? FileDescriptor.open(path, .readOnly, options: .closeOnExec) else { return false }
        defer { try? file.close() }
        // If another process opens the file during the lease, the kernel sends a signal. This call replaces the default, SIGIO, which would
        // end the test process.
        _ = fcntl(file.rawValue, Self.setSignal, SIGURG)
        return fcntl(file.rawValue, Self.setLease, CInt(F_WRLCK)) != 0 && errno == EAGAIN
    }

    /// `F_SETLEASE` and `F_SETSIG` of Linux (include/uapi/linux/fcntl.h, include/uapi/asm-generic/fcntl.h), which the Glibc module lacks.
    private static let (setLease, setSignal): (CInt, CInt) = (1024, 10)

    private static func exists(_ path: FilePath) -> Bool {
        guard let file = try? FileDescriptor.open(path, .readOnly, options: .closeOnExec) else { return false }
        try? file.close()
        return true
    }

    func storedContent(of path: RemotePath) async throws -> Data? {
        guard let path = try await file(path) else { return nil }
        let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
        return try file.closeAfter { try FileHandle(fileDescriptor: file.rawValue, closeOnDealloc: false).readToEnd() ?? Data() }
    }

    func isComplete(_ path: RemotePath) async throws -> Bool {
        Self.exists(FilePath(bytes: FilePath(files.path).bytes + [UInt8(ascii: "/")] + path.bytes))
    }

    func cut(afterBytes bytes: Int64) async throws {
        wasCut.withLock { $0 = true }
        relay.cut(direction, inAllAfter: Int(bytes))
    }

    func provide(_ content: Data, as path: RemotePath) async throws {
        let file = files.appending(path: path.description)
        try FileManager.default.createDirectory(at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
        try content.write(to: file)
        // The transport identifies versions by the size and the modification time in whole seconds, so each version gets a different time.
        let version = versions.withLock { version in
            version += 1
            return version
        }
        let time = Date(timeIntervalSince1970: 1_700_000_000 + Double(version))
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.path)
    }
}
