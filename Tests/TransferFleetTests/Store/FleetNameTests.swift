import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferFleet
import TransferKit
import TransportHTTP
import TransportSFTP
import TransportTUS

/// Items with the same remote name. A fleet rejects such items when they are added, as a local queue does.
@Suite(.timeLimit(.minutes(2))) struct FleetNameTests {
    private func account(_ address: String) -> Account {
        let transport: TransportID = address.hasPrefix("sftp:") ? .sftp : address.hasPrefix("https:") ? .tus : .http
        return Account("studio", endpoints: [Endpoint(transport: transport, address: address)])
    }

    private func open(_ fixture: FleetFixture) throws -> Fleet {
        try Fleet(fixture.url, place: .anywhere, transports: [TUSTransport(), SFTPTransport(), HTTPTransport()])
    }

    /// Calls a closure with the paths of two files that have the same name.
    private func withFiles(_ body: ([FilePath]) async throws -> Void) async throws {
        let root = FileManager.default.temporaryDirectory.appending(path: "names-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        var paths: [FilePath] = []
        for name in ["one", "two"] {
            let folder = FilePath(root.path).appending(name)
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
            let path = folder.appending("clip.mov")
            try name.write(toFile: path.string, atomically: false, encoding: .utf8)
            paths.append(path)
        }
        try await body(paths)
    }

    private static let addresses: [(String, Bool)] = [
        ("https+put://one.example/", true), ("https+put://one.example/{transfer}/{name}", false), ("https+form://one.example/", true),
        ("sftp://me@one.example/in/", true), ("https://one.example/", false),
    ]

    @Test(arguments: addresses) func `files with the same remote name are rejected if one of the files would be lost`(
        address: String, isRejected: Bool
    ) async throws {
        let fixture = try await FleetFixture(account: account(address))
        let fleet = try open(fixture)
        try await withFiles { paths in
            let sessions = try paths.map { try SessionRequest.upload([$0], to: "studio") }
            // The files of one session, and those of two sessions that are added in one call.
            for requests in [[try SessionRequest.upload(paths, to: "studio")], sessions] {
                guard isRejected else {
                    #expect(try await fleet.add(requests).count == requests.count)
                    continue
                }
                let error = await #expect(throws: QueueError.self) { try await fleet.add(requests) }
                #expect(error?.code == .invalidRequest)
                for text in ["one/clip.mov and ", "two/clip.mov have the same remote name, \"clip.mov\"", "one.example"] {
                    #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
                }
            }
            #expect(try await fleet.status().sessions == (isRejected ? 0 : 3))
            // Different names don't clash.
            let distinct = try SessionRequest.upload(
                items: [TransferItem(paths[0]), TransferItem(paths[1], as: try RemotePath("other.mov"))], to: "studio")
            #expect(try await fleet.add([distinct]).count == 1)
        }
        await fleet.close()
    }

    @Test func `a change of a session is rejected if one of its files would then be lost`() async throws {
        let fixture = try await FleetFixture(account: account("https://one.example/"))
        let fleet = try open(fixture)
        try await fleet.save(Account("put", endpoints: [Endpoint(transport: .http, address: "https+put://one.example/")]))
        try await withFiles { paths in
            let distinct = try SessionRequest.upload(
                items: [TransferItem(paths[0]), TransferItem(paths[1], as: try RemotePath("other.mov"))], to: "studio")
            let ids = try await fleet.add([try .upload(paths, to: "studio"), distinct, try .upload(paths, to: "studio")])
            try await fleet.hold(ids[2])
            try await fleet.cancel(ids[2])
            let update = SessionUpdate(account: "put", name: "changed")
            for reference in [SessionReference.id(ids[0]), .index(0, expecting: nil)] {
                let error = await #expect(throws: QueueError.self) { try await fleet.apply(.update(update), to: reference) }
                #expect(error?.code == .invalidRequest)
                #expect(error?.message.contains("have the same remote name, \"clip.mov\"") == true, "\(error?.message ?? "")")
            }
            // A group is changed only if no file would be lost. Cancelled sessions are skipped.
            await #expect(throws: QueueError.self) { try await fleet.apply(.update(update), to: .all) }
            #expect(try await fleet.sessions(in: .all).map(\.account) == ["studio", "studio", "studio"])
            #expect(try await fleet.apply(.update(update), to: .sessions([ids[1], ids[2]])) == [ids[1]])
            #expect(try await fleet.sessions(in: .all).map(\.account) == ["studio", "put", "studio"])
            // Other changes need no check.
            try await fleet.update(ids[0], SessionUpdate(tags: ["a"], name: "changed"))
            #expect(try await fleet.status(of: ids[0]).name == "changed")
        }
        await fleet.close()
    }

    @Test func `a duplicate of an existing session is accepted even if its names clash`() async throws {
        let fixture = try await FleetFixture(account: account("https://one.example/"))
        let fleet = try open(fixture)
        try await withFiles { paths in
            func request(_ key: String) throws -> SessionRequest {
                var request = try SessionRequest.upload(paths, to: "studio")
                request.deduplicationKey = key
                return request
            }
            let first = try await fleet.add([try request("a")])
            try await fleet.save(account("https+put://one.example/"))
            #expect(try await fleet.add([try request("a")]) == first)
            let error = await #expect(throws: QueueError.self) { try await fleet.add([try request("b")]) }
            #expect(error?.message.contains("same remote name") == true, "\(error?.message ?? "")")
            #expect(try await fleet.sessionIDs() == first)
        }
        await fleet.close()
    }

    @Test func `the web server of a fleet rejects files with the same remote name`() async throws {
        let fixture = try await FleetFixture(account: account("https+put://one.example/"))
        let web = try await FleetWeb(of: fixture)
        defer { web.stop() }
        try await withFiles { paths in
            let body = #"{"account":"studio","paths":["\#(paths[0])","\#(paths[1])"]}"#
            let words = [
                "--silent", "--header", "Authorization: Bearer \(web.token)", "--json", body, "\(web.site)/api/v1/sessions",
            ]
            let response = try await BlockingIO.run { String(decoding: try StartedProgram.run("curl", words).output, as: UTF8.self) }
            #expect(response.contains("same remote name"), "\(response)")
            #expect(try await fixture.fleet.sessionIDs().isEmpty)
        }
    }
}
