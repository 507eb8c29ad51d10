import Foundation
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// The queue's stall watch and the tus transport together: a server that falls silent is left, asked, and gone on with.
@Suite struct StallTests {
    @Test func aSilentServerIsAskedWhereItStands() async throws {
        let workshop = try Workshop()
        let size = 1 << 20
        let server = try ScriptedServer { request, number in
            switch (request.method, number) {
            case ("POST", _): [.tus(201, ["Location": "/files/1"])]
            case ("PATCH", 1): [.silence]
            case ("HEAD", _): [.tus(200, ["Upload-Offset": "0", "Upload-Length": "\(size)"])]
            case ("PATCH", _): [.tus(204, ["Upload-Offset": "\(size)"])]
            default: [.tus(405)]
            }
        }
        defer { server.stop() }
        let queue = try await workshop.openQueue(server.url())
        let events = queue.events
        let options = SessionOptions(stallTimeout: .milliseconds(300), responseTimeout: .milliseconds(300))
        let session = try await queue.enqueue(try .upload([workshop.file("large", size: size)], to: "real", options: options))
        try await queue.start()
        var failure: TransferError?
        for await event in events {
            if case .attemptFailed(_, let error, _) = event.kind { failure = error }
            if failure != nil { break }
        }
        #expect(failure?.code == .stalled)
        #expect(try await session.value.state == .completed)
        #expect(server.requests.map(\.method) == ["POST", "PATCH", "HEAD", "PATCH"])
        await queue.shutdown()
    }
}
