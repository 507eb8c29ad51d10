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
        let hasBeenSilent = Locked(false)
        let server = try ScriptedServer { request, _ in
            switch request.method {
            case "OPTIONS": return [.answer(404)]
            case "POST": return [.tus(201, ["Location": "/files/1"])]
            case "HEAD": return [.tus(200, ["Upload-Offset": "0", "Upload-Length": "\(size)"])]
            default:
                let isFirst = hasBeenSilent.withLock { hasBeenSilent in
                    defer { hasBeenSilent = true }
                    return !hasBeenSilent
                }
                return isFirst ? [.silence] : [.tus(204, ["Upload-Offset": "\(size)"])]
            }
        }
        defer { server.stop() }
        let queue = try await workshop.openQueue(server.url())
        let events = queue.events
        // On a busy machine other requests may seem to hang too, and are left and repeated just the same.
        let options = SessionOptions(
            retry: RetryPolicy(maximumAttempts: 1_000), stallTimeout: .milliseconds(500), responseTimeout: .milliseconds(500))
        let session = try await queue.enqueue(try .upload([workshop.file("large", size: size)], to: "real", options: options))
        try await queue.start()
        let failure = await events.firstFailure()
        #expect(failure?.code == .stalled)
        #expect(try await session.value.state == .completed)
        let methods = server.requests.map(\.method)
        #expect(methods.count { $0 == "PATCH" } >= 2, "the silent one and another")
        for (earlier, later) in zip(methods, methods.dropFirst()) where later == "PATCH" {
            #expect(earlier != "PATCH", "no PATCH without a word of the server before it: \(methods)")
        }
        await queue.shutdown()
    }
}

extension QueueEvents {
    fileprivate func firstFailure() async -> TransferError? {
        for await event in self {
            if case .attemptFailed(_, let error, _) = event.kind { return error }
        }
        return nil
    }
}
