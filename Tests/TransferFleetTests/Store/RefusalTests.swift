import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferFleet
import TransferKit

/// Requests that a fleet rejects, and tables of an old version. Each message names the alternative; see the table in the article "Running a
/// fleet".
@Suite(.timeLimit(.minutes(2))) struct RefusalTests {
    private func message(_ body: () async throws -> Void) async -> String {
        let error = await #expect(throws: QueueError.self) { try await body() }
        #expect(error?.code == .invalidRequest)
        return error?.message ?? ""
    }

    @Test func `sessions with items other than files are rejected, and the message names the alternative`() async throws {
        let fleet = try await FleetFixture()
        let folder = FileManager.default.temporaryDirectory.path
        let form = TransferItem.form(fields: ["a": "b"], files: [.data(Data("x".utf8), name: "x")], as: "x")
        let bytes = AsyncStream<[UInt8]> { $0.finish() }
        let requests = [
            (try SessionRequest.upload([folder], to: "studio"), "Name the files of the folder"),
            (try .download(items: [.remoteFolder("reels")], from: "studio", to: folder), "Name the files of the remote folder."),
            (try .upload(items: [.data(Data("x".utf8), as: "x")], to: "studio"), "Write the data to a file"),
            (try .upload(items: [.stream(bytes, as: "x")], to: "studio"), "Write the stream to a file"),
            (try .upload(items: [form], to: "studio"), "Write the data to a file"),
        ]
        for (request, advice) in requests {
            let text = await message { _ = try await fleet.fleet.add([request]) }
            #expect(text.contains(advice), "\(text)")
        }
        #expect(try await fleet.fleet.status().sessions == 0)
    }

    @Test func `drafts and other unsupported operations are rejected, and the message names the alternative`() async throws {
        let fleet = try await FleetFixture()
        let id = try await fleet.add(1)[0]
        let request = try SessionRequest.upload(["/in/a"], to: "studio")
        let queue = fleet.fleet
        let refusals = [
            (await message { _ = try await queue.saveDrafts([request]) }, "Add the session with --hold, and release it later."),
            (await message { try await queue.enqueue(draft: id) }, "Add the session with --hold, and release it later."),
            (await message { try await queue.addItems([TransferItem("/in/b")], to: .id(id)) }, "Add another session."),
            (await message { try await queue.setRetention(.count(-1)) }, "A retention must be at least 0 sessions"),
            (await message { try await queue.setTimetable(nil, account: nil) }, "--rate"),
            (await message { try await queue.cancel(id, discarding: true) }, "Cancel without --discard."),
        ]
        for (text, advice) in refusals { #expect(text.contains(advice), "\(text)") }
        #expect(try await fleet.state(of: id) == .waiting)
    }

    @Test func `tables of the first version are migrated`() async throws {
        let fleet = try await FleetFixture()
        let ids = try await fleet.add(1)
        try await fleet.revertTables(to: 1)
        let old = await #expect(throws: QueueError.self) { try await Fleet(fleet.url, place: .anywhere).status() }
        #expect(old?.message.hasPrefix("The fleet's tables have the older version 1.") == true)
        #expect(try await !Fleet.create(at: fleet.url))
        let member = try await fleet.join("m")
        #expect(try await fleet.store.take(for: member).map(\.id) == ids)
        #expect(try await fleet.add([FleetFixture.draft("last")], at: 1).count == 1)
    }
}
