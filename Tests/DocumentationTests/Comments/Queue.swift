import Foundation
import TransferControl
import TransferCore
import TransferKit

// The code in the doc comments of TransferKit, TransferControl and TransferCore; see ``DocCommentTests``.

// swift-format-ignore
private func controls(
    _ queue: TransferQueue, _ request: SessionRequest, _ items: [TransferItem], _ id: SessionID, _ tonight: Date
) async throws {
    do {
        // COMMENT ControllableQueue+Verbs.swift
        let draft = try await queue.save(draft: request)
        try await queue.enqueue(draft: draft, to: .front)
        // END
    }
    let draft = id
    // COMMENT ControllableQueue.swift
    try await queue.replaceItems(.at([3]), with: [], in: .id(id))          // removes the item at position 3
    try await queue.replaceItems(.all, with: items, in: .id(draft))
    // END
    // COMMENT SessionUpdate.swift
    try await queue.update(id, SessionUpdate(account: "archive", notBefore: .set(tonight), overwrite: .always))
    // END
}

// swift-format-ignore
private func decodes(_ session: TransferSession, _ response: ServerResponse) async throws -> [Int] {
    do {
        // COMMENT ServerResponse.swift
        struct Created: Decodable { var id: Int }
        let id = try response.decoded(as: Created.self).id
        // END
        print(id)
    }
    // COMMENT TransferSession.swift
    struct Created: Decodable, Sendable { var id: Int }
    let id = try await session.response(as: Created.self).id
    // END
    return [id]
}

// swift-format-ignore
private final class Observer: TransferQueueDelegate {
    // COMMENT ControllableQueue+Contexts.swift
    func queue(_ queue: TransferQueue, didReceive event: QueueEvent) async {
        guard case .completed = event.kind, let ticket = try? await queue.context(of: event, as: Ticket.self) else { return }
        print("ticket \(ticket.id) is done")
    }
    // END
}

private struct Ticket: Codable, Sendable {
    var id: Int
}

// swift-format-ignore
@MainActor private func lists(_ queue: TransferQueue, _ tableView: Table) async {
    // COMMENT QueueList.swift
    let events = queue.events
    var list = QueueList(await queue.order())
    for await event in events {
        switch list.apply(event.kind) {
        case .inserted(let indices): tableView.insertRows(at: indices)
        case .removed(let indices): tableView.deleteRows(at: indices)
        case .moved(let index, let newIndex): tableView.moveRow(from: index, to: newIndex)
        case .outdated: list = QueueList(await queue.order())
        case nil: break
        }
    }
    // END
}

/// A stand-in for a table view.
@MainActor private final class Table {
    func insertRows(at indices: Range<Int>) {}
    func deleteRows(at indices: [Int]) {}
    func moveRow(from index: Int, to newIndex: Int) {}
}

// swift-format-ignore
private func credentials(_ keyring: any Keyring, _ apiKey: String) -> (ReferencedCredentials, CredentialReference) {
    // COMMENT Credentials.swift
    let key = CredentialReference.header("X-Api-Key", .value(Secret(apiKey)))
    // END
    // COMMENT ReferencedCredentials.swift
    let credentials = ReferencedCredentials { name in
        Secret(try await keyring.password(named: name))
    }
    // END
    return (credentials, key)
}

private protocol Keyring: Sendable {
    func password(named name: String) async throws -> String
}

// swift-format-ignore
private func requests(_ queue: TransferQueue) async throws {
    // COMMENT SessionOptions.swift
    let options = SessionOptions(creationURL: "https://upload.example.com/projects/7/files/")
    // END
    print(options)
    // COMMENT TransferItem+Forms.swift
    let form = TransferItem.form(
        fields: ["title": "Day one"], files: [.file("/srv/a.mov", field: "reel"), .file("/srv/a.pdf", mediaType: "application/pdf")])
    try await queue.enqueue(.upload(items: [form], to: "site"))
    // END
    // COMMENT TransferItem.swift
    var item = TransferItem("/tmp/export.mov")
    item.keepsCopy = true
    // END
    print(item)
}
