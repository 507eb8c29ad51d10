// swift-format-ignore-file

import Foundation
import SystemPackage
import TransferCore
import TransferKit
import TransportSFTP

// The code of the article "Migrating from the Aspera SDK", in the same order. ``ArticleTests`` verifies that both copies match.

private func opening(keychain: any Passwords) async throws {
    // ARTICLE
    let credentials = ReferencedCredentials { name in Secret(try await keychain.password(named: name)) }
    let queue = try await TransferQueue(
        storage: .application("com.example.uploader"), transports: [SFTPTransport()], credentials: credentials)
    try await queue.save(Account("studio", endpoints: [.sftp("sftp://usr@example.com/in/", credentials: .password(.app("studio")))]))

    let session = try await queue.enqueue(.upload(["path/to/file1"], to: "studio"))
    try await queue.start()
    // END
    print(session.id)
}

private func controlling(queue: TransferQueue, first: TransferSession, second: TransferSession) async throws {
    // ARTICLE
    try await queue.run(second.id)           // now: interrupts the running session, which resumes when this one has ended
    try await queue.run(.at(1))              // the same, by index
    try await queue.runNext(second.id)       // next in line, without an interruption
    try await queue.yield(first.id)          // interrupts; the queue runs it again automatically
    try await queue.pause(first.id)          // interrupts, and keeps its slot until resume
    try await queue.resume(first.id)
    try await queue.hold(first.id)           // interrupts, and lets others run until release
    try await queue.release(first.id)
    try await queue.cancel(first.id)         // interrupts; the queue never runs it again automatically
    try await queue.retry(first.id)          // or run: transfers what is missing
    try await queue.move(first.id, to: .end)
    try await queue.remove(first.id)
    // END
}

private func adding(queue: TransferQueue, session: TransferSession) async throws {
    // ARTICLE
    try await session.addItems([TransferItem("path/to/file2")])
    // END
}

// ARTICLE
@MainActor final class QueueWatcher: TransferQueueDelegate {
    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) {
        switch event.kind {
        case .didActivate(let id): print("\(id) has a slot.")
        case .didStartRunning(let id): print("\(id) is connected.")
        case .didStopRunning(let id): print("The run of \(id) has ended.")
        case .didDeactivate(let id): print("\(id) has released its slot.")
        case .attemptFailed(let id, let error, let date): print("\(id) will be retried at \(date). \(error)")
        case .progress(let id, let figures): print("\(id): \(figures.bytesDone) bytes")
        case .completed(let id): print("\(id) completed.")
        case .failed(let id, let error): print("\(id) failed. \(error)")
        default: break
        }
    }
}
// END

private protocol Passwords: Sendable {
    func password(named name: String) async throws -> String
}
