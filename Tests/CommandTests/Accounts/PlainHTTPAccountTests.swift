import Foundation
import Testing

/// Accounts for servers that support neither tus nor SFTP.
@Suite struct PlainHTTPAccountTests {
    @Test func acceptsSchemesOfPlainHTTP() async throws {
        let program = try TransferQ()
        let addresses = [
            "https+put://one.example/in/{path}?signature=x", "http+put://one.example/", "https+form://two.example/upload?id={transfer}",
            "http+form://two.example/upload", "https+get://three.example/{name}", "http+get://three.example/",
        ]
        let added = try await program.run(["account", "add", "bucket"] + addresses)
        #expect(added.status == 0, "\(added.diagnostics)")
        let account = try #require(try await program.succeed("account", "show", "bucket", "--json").objects().first)
        let endpoints = try #require(account["endpoints"] as? [[String: Any]])
        #expect(endpoints.allSatisfy { $0["transport"] as? String == "http" })
        let shown = endpoints.compactMap { $0["address"] as? String }
        #expect(shown.map { $0.prefix { $0 != "?" } } == addresses.map { $0.prefix { $0 != "?" } })
    }

    @Test(arguments: [
        ("https://one.example/", "chunksize", "chunkSize"), ("sftp://one.example/", "maxConection", "maxConnections"),
        ("https+form://one.example/", "fields.title", "field.NAME"),
    ])
    func suggestsNearestSetting(address: String, name: String, nearest: String) async throws {
        let program = try TransferQ()
        let result = try await program.run("account", "add", "bucket", address, "--setting", "\(name)=hunter2")
        #expect(result.status != 0)
        #expect(result.diagnostics.contains("Did you mean \(nearest)?"), "\(result.diagnostics)")
        #expect(!result.diagnostics.contains("hunter2"))
    }

    @Test(arguments: [
        ["https+put://user:hunter2@one.example/"], ["https+put://one.example/", "--header", "Content-Length: 3"],
        ["https+put://one.example/#hunter2"], ["https+patch://one.example/"],
    ])
    func rejectsInvalidArguments(arguments: [String]) async throws {
        let program = try TransferQ()
        let result = try await program.run(["account", "add", "bucket"] + arguments)
        #expect(result.status == 2)
        #expect(!result.diagnostics.contains("hunter2"))
    }
}
