import Foundation
import Locking
import ProcessFixture
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransferFleet
import TransferKit
import TransportHTTP

/// Forms in a fleet. A member can die after the server has received a form and before the member has stored the form's completion in the
/// database.
@Suite(.timeLimit(.minutes(3))) struct FormTests {
    private struct Setup {
        let fixture: MemberFixture
        let server: ScriptedServer

        /// - Parameter steps: The steps for a request, by its number.
        init(_ options: HTTPOptions = HTTPOptions(), _ steps: @escaping @Sendable (Int) -> [ServerStep]) async throws {
            fixture = try await MemberFixture()
            server = try ScriptedServer { _, number in steps(number) }
            var options = options
            options.fields = ["transfer": "{transfer}"]
            let address = server.url("/in").replacing("http://", with: "http+form://")
            try await fixture.fleet.fleet.save(Account("forms", endpoints: [.http(address, options: options)]))
        }

        /// Adds a session with forms that are sent one after the other. Each form has one file: 100 bytes of content, then zeros up to the
        /// given size.
        func add(sizes: [Int64] = [100_000]) async throws -> SessionID {
            let forms = try sizes.indices.map { index in
                let path = try fixture.file("clip-\(index)", size: 100)
                let file = try FileDescriptor.open(path, .writeOnly)
                try file.closeAfter { try file.resize(to: sizes[index]) }
                return TransferItem.form(fields: ["title": "Reel"], files: [.file(path, field: "clip")])
            }
            let options = SessionOptions(filesInFlight: 1)
            return try await fixture.fleet.fleet.add([try .upload(items: forms, to: "forms", options: options)])[0]
        }

        func waitForBodies(_ count: Int) async throws {
            try await fixture.wait("the server has \(count) whole forms") { completeForms.count >= count }
        }

        /// The received bodies that end with the last line of a form.
        var completeForms: [[UInt8]] { server.requests.map(\.body).filter { $0.suffix(4).elementsEqual("--\r\n".utf8) } }

        /// The different values of the field `transfer` in the whole forms.
        var transfers: Set<String> {
            Set(
                completeForms.compactMap { body in
                    String(decoding: body.prefix(1_000), as: UTF8.self).firstMatch(of: /name="transfer"\r\n\r\n(.*?)\r\n/).map {
                        String($0.1)
                    }
                })
        }

        func error(of id: SessionID, at position: Int = 0) async throws -> TransferError? {
            try await fixture.fleet.fleet.items(of: id, from: 0, limit: 10)[position].error
        }

        /// Starts a member, kills it once the server has the whole first form, and ends its lease. Then starts another member, and returns that
        /// member.
        func takeOver(_ id: SessionID) async throws -> StartedProgram {
            let first = try fixture.start("a")
            try await waitForBodies(1)
            first.kill()
            try await fixture.fleet.query("UPDATE session SET lease_until = clock_timestamp() WHERE owner IS NOT NULL")
            return try fixture.start("b")
        }
    }

    /// Never responds to the first form, and accepts all other forms.
    private static func stepsIgnoringFirstForm(_ number: Int) -> [ServerStep] { [.read(nil)] + (number == 0 ? [.silence] : [.answer(201)]) }

    @Test func `a form with an unknown outcome is reported, and not sent again until a user retries it`() async throws {
        let setup = try await Setup { Self.stepsIgnoringFirstForm($0) }
        defer { setup.server.stop() }
        let id = try await setup.add(sizes: [100_000, 1_000])
        let second = try await setup.takeOver(id)
        try await setup.fixture.waitForAll([id], .failed)
        #expect(try await setup.error(of: id)?.code == .outcomeUnknown)
        #expect(try await setup.fixture.fleet.fleet.items(of: id, from: 0, limit: 10).map(\.state) == [.failed, .completed])
        #expect(setup.completeForms.count == 2 && setup.transfers.count == 2)
        _ = try await setup.fixture.fleet.fleet.apply(.retry, to: .id(id))
        try await setup.fixture.waitForAll([id])
        second.kill()
        #expect(setup.completeForms.count == 3)
        #expect(setup.transfers.count == 2, "The second copy of the form has another ID.")
    }

    @Test func `a form may be sent again after a takeover if the account allows it`() async throws {
        let setup = try await Setup(HTTPOptions(repeatsUnknownOutcomes: true)) { Self.stepsIgnoringFirstForm($0) }
        defer { setup.server.stop() }
        let id = try await setup.add()
        let second = try await setup.takeOver(id)
        try await setup.fixture.waitForAll([id])
        second.kill()
        #expect(setup.completeForms.count == 2 && setup.transfers.count == 1)
    }

    /// The server accepts only whole forms, so sending an incomplete form again creates no second copy.
    @Test(arguments: [true, false]) func `an incomplete form is sent again`(isKilled: Bool) async throws {
        let hasStarted = Locked(false)
        let setup = try await Setup { number in
            number == 0 ? [.read(1_000), .call { hasStarted.withLock { $0 = true } }, .silence] : [.read(nil), .answer(201)]
        }
        defer { setup.server.stop() }
        // The socket buffers hold only the beginning of this form.
        let id = try await setup.add(sizes: [100_000_000])
        let first = try setup.fixture.start("a")
        try await setup.fixture.wait("the server has the beginning of the form") { hasStarted.withLock(\.self) }
        if isKilled {
            first.kill()
        } else {
            first.send(SIGTERM)
            _ = await BlockingIO.run { first.waitForEnd() }
        }
        try await setup.fixture.fleet.query("UPDATE session SET lease_until = clock_timestamp() WHERE owner IS NOT NULL")
        let second = try setup.fixture.start("b")
        try await setup.fixture.waitForAll([id])
        second.kill()
        #expect(setup.completeForms.count == 1)
    }

    @Test func `a form that the server rejected is sent again by another member`() async throws {
        let setup = try await Setup { $0 == 0 ? [.read(nil), .answer(503, ["Retry-After": "3600"])] : [.read(nil), .answer(201)] }
        defer { setup.server.stop() }
        let id = try await setup.add()
        let first = try setup.fixture.start("a")
        try await setup.fixture.wait("the member has stored that the form was rejected") {
            try await setup.fixture.fleet.store.progress(of: id).contains { $0.event == .record(isPossible: false, generation: 1) }
        }
        first.kill()
        try await setup.fixture.fleet.query("UPDATE session SET lease_until = clock_timestamp() WHERE owner IS NOT NULL")
        let second = try setup.fixture.start("b")
        try await setup.fixture.waitForAll([id])
        second.kill()
        #expect(setup.completeForms.count == 2 && setup.transfers.count == 1)
    }

    /// The form is sent again only if a user retries it after its unknown outcome was reported.
    @Test(arguments: ["reset", "gateway", "pause", "cancel"]) func `without a retry, a form with an unknown outcome is not repeated`(
        end: String
    ) async throws {
        let ended = Locked(0)
        let setup = try await Setup { number in
            guard number == 0 else { return [.read(nil), .answer(201)] }
            return switch end {
            case "reset": [.read(nil), .reset]
            case "gateway": [.read(nil), .answer(504)]
            default: [.read(nil), .end { ended.withLock { $0 += 1 } }]
            }
        }
        defer { setup.server.stop() }
        let (id, fleet) = (try await setup.add(), setup.fixture.fleet.fleet)
        let member = try setup.fixture.start("a")
        try await setup.waitForBodies(1)
        switch end {
        case "pause":
            _ = try await fleet.apply(.pause, to: .id(id))
            // The server waits until the member closes the connection.
            try await setup.fixture.wait("the member has ended the request") { ended.withLock { $0 } > 0 }
            _ = try await fleet.apply(.resume, to: .id(id))
        case "cancel":
            _ = try await fleet.apply(.cancel(), to: .id(id))
            try await setup.fixture.wait("the member has given the session back") { try await setup.fixture.owner(of: id) == nil }
            _ = try await fleet.apply(.retry, to: .id(id))
        default: break
        }
        try await setup.fixture.waitForAll([id], .failed)
        #expect(try await setup.error(of: id)?.code == .outcomeUnknown)
        #expect(setup.completeForms.count == 1)
        _ = try await fleet.apply(.retry, to: .id(id))
        try await setup.fixture.waitForAll([id])
        member.kill()
        #expect(setup.completeForms.count == 2 && setup.transfers.count == 1)
    }
}
