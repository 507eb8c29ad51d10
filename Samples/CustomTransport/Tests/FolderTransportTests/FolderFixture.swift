import FolderTransport
import Foundation
import SystemPackage
import TransferCore
import TransportTesting

/// A fixture for the folder transport, with a simulated drive that can be unplugged.
final class FolderFixture: DownloadingFixture {
    struct NoCredentials: CredentialProvider {
        func secret(for reference: CredentialReference) async throws -> Secret { Secret("") }
    }

    let transport: any Transport
    let endpoint: Endpoint
    let unreachableEndpoint: Endpoint
    let credentials: any CredentialProvider = NoCredentials()
    let secrets: [String] = []
    let folder: FilePath

    /// The endpoint's folder.
    let archive: URL
    private let base: URL
    private let drive = UnpluggedDrive()

    init() throws {
        base = FileManager.default.temporaryDirectory.appending(path: "folder-transport-\(UUID().uuidString)")
        archive = base.appending(path: "archive")
        folder = FilePath(base.appending(path: "local").path)
        for name in ["archive", "local"] {
            try FileManager.default.createDirectory(at: base.appending(path: name), withIntermediateDirectories: true)
        }
        transport = FolderTransport { [drive] in try drive.pass($0) }
        endpoint = Endpoint(transport: "folder", address: "folder://localhost\(archive.path)/")
        unreachableEndpoint = Endpoint(transport: "folder", address: "folder://localhost\(base.path)/not-attached/")
    }

    deinit {
        try? FileManager.default.removeItem(at: base)
    }

    func storedContent(of path: RemotePath) async throws -> Data? {
        try content(path.bytes) ?? content(partName(of: path))
    }

    func isComplete(_ path: RemotePath) async throws -> Bool {
        try content(path.bytes) != nil
    }

    func cut(afterBytes bytes: Int64) async throws {
        drive.unplug(after: Int(bytes))
    }

    func provide(_ content: Data, as path: RemotePath) async throws {
        try content.write(to: archive.appending(path: path.description), options: .atomic)
    }

    /// The name of an upload's part file. The name contains the transfer's ID, which the conformance suite derives from the file's name.
    private func partName(of path: RemotePath) throws -> [UInt8] {
        let transferID = "conformance-\(path.bytes.reduce(UInt64(5381)) { $0 &* 33 &+ UInt64($1) })"
        return Array(".tq-\(transferID).part".utf8)
    }

    private func content(_ name: [UInt8]) throws -> Data? {
        let bytes = Array(archive.path.utf8) + [UInt8(ascii: "/")] + name
        let path = unsafe FilePath(platformString: bytes.map(CChar.init(bitPattern:)) + [0])
        do {
            let file = try FileDescriptor.open(path, .readOnly, options: .closeOnExec)
            return try file.closeAfter {
                try FileHandle(fileDescriptor: file.rawValue, closeOnDealloc: false).readToEnd() ?? Data()
            }
        } catch Errno.noSuchFileOrDirectory {
            return nil
        }
    }
}
