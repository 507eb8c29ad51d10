// swift-format-ignore-file

import Foundation
import Logging
import SystemPackage
import TransferControl
import TransferKit

// The code of the front page of `TransferControl`, in the same order. ``ArticleTests`` verifies that both copies match.

private func useOwner(lines: AsyncStream<String>) async throws {
    // ARTICLE
    let agent = RemoteTransferQueue(folder: "/var/lib/app/transfers")
    let revision = try await agent.status().revision
    let id = try await agent.enqueue(.upload(["reel.mov"], to: "studio"))
    // … the app may exit here and be started again …
    for try await event in agent.events(since: revision) where event.concerns(id) {
        print(event.kind.name)
    }
    // END
    try await produce(agent, lines)
}

private func serve(_ folder: FilePath, _ transports: [any Transport], _ logger: Logger) async throws {
    // ARTICLE
    let queue = try await TransferQueue(storage: .folder(folder), transports: transports)
    let server = try ControlServer(for: queue, logger: logger)
    // … and at the end, instead of queue.shutdown():
    await server.shutDownQueue()
    // END
}

private func produce(_ agent: RemoteTransferQueue, _ lines: AsyncStream<String>) async throws {
    // ARTICLE
    let stream = try await agent.enqueueStream(as: "log.txt", .upload(items: [], to: "studio"))
    for try await line in lines { try await stream.write(Data("\(line)\n".utf8)) }
    try await stream.finish()
    // END
}
