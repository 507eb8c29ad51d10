import Foundation
import SystemPackage
import TransferCore
import TransportTesting

/// A fixture with which the conformance suite tests a `MemoryTransport`, or a transport that wraps one.
struct MemoryFixture: ListingFixture {
    let memory: MemoryTransport
    let transport: any Transport
    let bench: Workbench
    let secrets = ["hunter2-correct-horse"]
    let resumption: UploadResumption
    private let considersAllFilesComplete: Bool

    init(
        resumption: UploadResumption = .fromCheckpoint, considersAllFilesComplete: Bool = false,
        wrap: (MemoryTransport) -> any Transport = { $0 }
    ) throws {
        self.resumption = resumption
        self.considersAllFilesComplete = considersAllFilesComplete
        memory = MemoryTransport(acceptedSecret: "hunter2-correct-horse")
        memory.refuse(host: "gone.example")
        transport = wrap(memory)
        bench = try Workbench()
    }

    var folder: FilePath { bench.folder }
    var endpoint: Endpoint { memory.endpoint(credentials: [.bearer(.environment("TOKEN"))]) }
    var unreachableEndpoint: Endpoint { memory.endpoint(host: "gone.example", credentials: endpoint.credentials) }
    var credentials: any CredentialProvider { FixedCredentials(value: "hunter2-correct-horse") }

    func storedContent(of path: RemotePath) async throws -> Data? { memory.partialContents(of: path.description) }

    func storedSize(of path: RemotePath) async throws -> Int64 { Int64(memory.partialContents(of: path.description)?.count ?? 0) }

    func isComplete(_ path: RemotePath) async throws -> Bool {
        considersAllFilesComplete || memory.contents(of: path.description) != nil
    }

    func provide(_ content: Data, as path: RemotePath) async throws { memory.provide(content, as: path.description) }

    func makeFolder(_ path: RemotePath) async throws { memory.provideFolder(path.description) }

    func cut(afterBytes bytes: Int64) async throws { memory.faults.append(.cut(afterBytes: bytes)) }
}
