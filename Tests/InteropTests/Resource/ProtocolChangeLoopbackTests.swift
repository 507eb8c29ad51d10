import Foundation
import SystemPackage
import TUSLoopback
import Testing
import TransferCore
import TransferKit
import TransportTUS

/// Uploads by a queue whose tus server is replaced by a server that speaks the IETF protocol *Resumable Uploads for HTTP*, or the reverse.
@Suite(.timeLimit(.minutes(3))) struct ProtocolChangeLoopbackTests {
    private let interop: InteropFixture

    init() throws {
        interop = try InteropFixture()
    }

    /// The connection breaks in the middle of a file, and a server that speaks the other protocol replaces the first server. The file restarts once,
    /// and the next file does not restart.
    @Test(
        arguments: [(.tus, .draft8), (.tus, .final), (.draft8, .tus), (.final, .tus)] as [(LoopbackDialect, LoopbackDialect)],
        [true, false])
    func restartsFile(change: (old: LoopbackDialect, new: LoopbackDialect), reopens: Bool) async throws {
        let server = interop.loopbackServer(LoopbackOptions(dialect: change.old))
        let url = try await server.start()
        var queue = try await interop.openQueue(url.absoluteString)
        try await queue.start()
        // From the upload of this file, the queue's transport learns which protocol the server speaks.
        let first = try await queue.enqueue(try .upload([interop.file("first", size: 10)], to: "real"))
        await queue.waitUntilIdle()
        #expect(try await first.value.state == .completed)
        server.stopContent(at: 1 << 20)
        // The file "a" is larger than all buffers on the network path, so the old server can't have all of it.
        let files = try [interop.file("a", size: 32 << 20), interop.file("b", size: 10)]
        let id = try await queue.enqueue(.upload(files, to: "real")).id
        try await queue.session(id).waitUntilSent(1 << 20)
        let port = try #require(url.port)
        var events = queue.events
        if reopens { await queue.shutdown() }
        await server.stop()
        let next = TUSLoopbackServer(
            folder: FilePath(interop.folder.appending(path: "next").path), port: UInt16(port), options: LoopbackOptions(dialect: change.new)
        )
        _ = try await next.start()
        if reopens {
            queue = try await interop.openQueue(url.absoluteString)
            events = queue.events
            try await queue.start()
        }
        let restart = await events.first { kind -> TransferError? in
            guard case .itemRestarted(id, position: 0, let error) = kind else { return nil }
            return error
        }
        #expect(restart?.failureClass == .resumeLost)
        // A new tus server only reports that it does not know the upload's URL, so the message names no protocol.
        if change.old == .tus { #expect(restart?.message.contains("now speaks Resumable Uploads for HTTP") == true) }
        #expect(try await queue.session(id).value.state == .completed)
        for path in files {
            let stored = next.storedFiles(named: path.lastComponent?.string ?? "")
            #expect(try stored.map { try interop.content($0) } == [interop.content(path)], "\(path)")
        }
        // Counts the uploads instead of the requests, because some requests are rejected creations.
        #expect(next.statistics.uploads.count == 2, "the file restarts once")
        await queue.shutdown()
        await next.stop()
    }
}
