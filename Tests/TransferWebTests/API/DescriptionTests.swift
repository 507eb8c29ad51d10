import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct DescriptionTests {
    private static let root = FilePath(FileManager.default.currentDirectoryPath)
    private static let description = root.appending("Sources/TransferWeb/openapi.json")

    /// Runs a program of the Python environment in `.build/browser`. Returns its output if it fails, otherwise nil.
    private func failure(_ name: String, _ arguments: [String], in folder: FilePath) async throws -> String? {
        let errors = folder.appending("output")
        let words = ([Self.root.appending(".build/browser/bin").appending(name).string] + arguments).map { "'\($0)'" }.joined(
            separator: " ")
        // The programs print failures to both streams.
        let program = try StartedProgram("/bin/sh", ["-c", "cd '\(folder)' && exec \(words) >&2"], errors: errors)
        let end = await BlockingIO.run { program.waitForEnd() }
        return end?.status == 0 ? nil : try String(contentsOfFile: errors.string, encoding: .utf8)
    }

    @Test func `the description is valid, and the server serves it`() async throws {
        try await WebFixture.with { fixture in
            #expect(try await failure("openapi-spec-validator", [Self.description.string], in: fixture.folder) == nil)
            let served = try await fixture.client("web-read.token").get("/api/v1/openapi.json")
            #expect(try served.body == String(contentsOfFile: Self.description.string, encoding: .utf8))
        }
    }

    @Test func `each described resource exists, and accepts exactly the described methods`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let document = try await client.get("/api/v1/openapi.json").object
            let paths = try #require(document["paths"] as? [String: [String: Any]])
            for (path, operations) in paths {
                let path = path.replacing("{id}", with: SessionID().description).replacing("{name}", with: "x").replacing(
                    "{number}", with: "1")
                let reply = try await client.send("PATCH", path)
                let allowed = Set((reply.headers["allow"] ?? "").split(separator: ", ").map { $0.lowercased() }).subtracting(["head"])
                #expect(reply.status == 405 && allowed == Set(operations.keys), "\(path) \(allowed) \(operations.keys)")
            }
            #expect(paths.count >= 30)
        }
    }

    @Test func `the described objects have the members that the command prints`() throws {
        func object(_ path: FilePath) throws -> [String: Any] {
            try #require(JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: path.string))) as? [String: Any])
        }
        let components = try #require(try object(Self.description)["components"] as? [String: Any])
        let described = try #require(components["schemas"] as? [String: [String: Any]])
        let schema = try #require(
            try object(Self.root.appending("Sources/Schemas/transferq.schema.json"))["$defs"] as? [String: [String: Any]])
        func names(_ object: [String: Any]?) -> Set<String> { Set((object?["properties"] as? [String: Any] ?? [:]).keys) }
        // The members that only the web server returns, and those that only the command prints.
        let differences: [(name: String, definition: String, web: Set<String>, command: Set<String>)] = [
            ("Queue", "queue", [], []), ("Session", "session", [], ["items"]), ("Item", "item", ["position"], []),
            ("Account", "account", [], []), ("Endpoint", "endpoint", [], []), ("Limits", "limits", ["mode"], []),
            ("Error", "error", [], []),
            ("Quarantined", "quarantined", [], []), ("Event", "event", [], []), ("Credential", "credential", [], []),
        ]
        for (name, definition, web, command) in differences {
            let (found, printed) = (names(described[name]), names(schema[definition]))
            #expect(!printed.isEmpty && found.subtracting(printed) == web, "\(name): \(found.subtracting(printed))")
            #expect(printed.subtracting(found) == command, "\(name): \(printed.subtracting(found))")
        }
    }

    @Test func `served objects have all described members`() async throws {
        try await WebFixture.with { fixture in
            let client = try fixture.client()
            let id = try await fixture.add(1)[0]
            let document = try await client.get("/api/v1/openapi.json").object
            let described = try #require((document["components"] as? [String: Any])?["schemas"] as? [String: [String: Any]])
            func check(_ object: [String: Any]?, _ name: String) {
                let properties = Set((described[name]?["properties"] as? [String: Any] ?? [:]).keys)
                let required = Set(described[name]?["required"] as? [String] ?? [])
                let found = Set(object?.keys.map { $0 } ?? [])
                #expect(!found.isEmpty && found.isSubset(of: properties), "\(name): \(found.subtracting(properties))")
                #expect(found.isSuperset(of: required), "\(name): \(required.subtracting(found))")
            }
            check(try await client.get("/api/v1/queue").object, "Queue")
            check(try await client.get("/api/v1/sessions/\(id)").object, "Session")
            check((try await client.get("/api/v1/sessions/\(id)/items").object["items"] as? [[String: Any]])?.first, "Item")
            check(try await client.get("/api/v1/accounts/a").object, "Account")
        }
    }

    /// This test needs an idle machine, because it sends thousands of requests. It runs only if TRANSFERKIT_BROWSER_TESTS is set.
    @Test(.enabled(if: ProcessInfo.processInfo.environment["TRANSFERKIT_BROWSER_TESTS"] != nil))
    func `random requests get only described responses`() async throws {
        try await WebFixture.with {
            // The server runs `transferq` to check accounts and the storage folder.
            $0.program = FilePath(Commands.path)
        } _: { fixture in
            try await fixture.add(3)
            let token = try fixture.token()
            let message = try await failure(
                "schemathesis",
                [
                    "run", Self.description.string, "--url", "http://127.0.0.1:\(fixture.port)", "--header",
                    "Authorization: Bearer \(token)",
                    "--max-examples", "25", "--seed", "1", "--exclude-path", "/api/v1/events", "--checks",
                    "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance", "--phases",
                    "examples,coverage,fuzzing", "--no-color",
                ], in: fixture.folder)
            #expect(message == nil, "\(message?.suffix(8_000) ?? "")")
        }
    }
}
