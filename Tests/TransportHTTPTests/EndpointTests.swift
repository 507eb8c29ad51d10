import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

@Suite struct EndpointTests {
    @Test(arguments: [
        "https+put://host", "http+put://host:8080/bucket/", "https+form://anna@host/upload?x=1", "HTTPS+GET://host/files/",
        "https+put://[::1]/{path}?sig={transfer}", "https+post://host/in",
    ])
    func acceptsValidAddresses(address: String) throws {
        try HTTPTransport.validate(.http(address))
    }

    @Test(arguments: [
        "https://host/", "http://host/", "ftp+put://host/", "https+patch://host/", "https+://host/", "https+put:host",
        "https+put://anna:secret@host/", "https+put://host/#part",
    ])
    func rejectsInvalidAddresses(address: String) {
        let error = #expect(throws: TransferError.self) { try HTTPTransport.validate(.http(address)) }
        #expect(error?.code == .invalidEndpoint)
        #expect(error?.message.contains("secret") == false)
    }

    @Test(arguments: [
        ["origins": "host"], ["fileField": ""], ["transferTimeout": "0"], ["transferTimeout": "soon"], ["acceptedStatuses": "200"],
        ["header.Content-Length": "1"], ["header.Authorization": "x"], ["header.Content-Type": "x/y"], ["header.Range": "bytes=0-"],
        ["field.": "x"], ["chunkSize": "1"], ["clientKey": "/key.pem"], ["metadataPrefix": "x: "], ["uploadURL.a": "https://host/"],
        ["header.X-Own": "a\r\nX-Other: b"],
    ])
    func rejectsInvalidSettings(settings: [String: String]) throws {
        let error = #expect(throws: TransferError.self) {
            try HTTPTransport.validate(Endpoint(transport: .http, address: "https+put://host/", settings: settings))
        }
        #expect(error?.code == .invalidEndpoint)
        let name = try #require(settings.keys.first?.split(separator: ".").last)
        #expect(error?.message.contains(name) == true)
    }

    /// With a misspelt placeholder, all files would have the same address and replace each other.
    @Test(arguments: [
        ("/in/{nmae}", "{nmae}"), ("/in?key={Path}", "{Path}"), ("/{name}/{source}", "{source}"), ("/in/{name", "a brace"),
        ("/in/name}", "a brace"), ("/in?sig={secret-0123}", "a brace"), ("/{{name}}", "a brace"),
    ])
    func rejectsUnknownPlaceholders(path: String, shown: String) {
        for mode in ["put", "form", "get"] {
            let error = #expect(throws: TransferError.self) { try HTTPTransport.validate(.http("https+\(mode)://host\(path)")) }
            #expect(error?.code == .invalidEndpoint)
            #expect(error?.message.contains(shown) == true && error?.message.contains("{name}, {path}, {transfer}") == true)
            #expect(error?.message.contains("secret") == false)
        }
    }

    @Test(arguments: ["https+put://{name}.host/", "https+put://a%3Ab@host/"]) func rejectsAddressesThatCannotBeSent(address: String) {
        let error = #expect(throws: TransferError.self) { try HTTPTransport.validate(.http(address)) }
        #expect(error?.code == .invalidEndpoint)
    }

    @Test func rejectsCredentialsForReservedHeaders() {
        #expect(throws: TransferError.self) {
            try HTTPTransport.validate(.http("https+put://host/", credentials: .header("Content-Length", .environment("X"))))
        }
    }

    @Test func checkFailsOnlyForCredentialsAndServerErrors() async throws {
        let server = try ScriptedServer { request, number in
            [[.answer(404, ["Accept-Ranges": "bytes"])], [.answer(401)], [.answer(401)], [.answer(503)]][number]
        }
        let transport = HTTPTransport()
        let endpoint = Endpoint.http("http+put://127.0.0.1:\(server.port)/in/{name}?sig=1")
        let report = try await transport.check(endpoint, credentials: FixedCredentials())
        #expect(report.version == "HTTP/1.1")
        #expect(report.features == ["Accept-Ranges: bytes"])
        // A signature is valid only for transfers, so the check does not send it, and accepts status 401.
        _ = try await transport.check(endpoint, credentials: FixedCredentials())
        let unsigned = Endpoint.http("http+put://127.0.0.1:\(server.port)/in/{name}")
        let refused = await #expect(throws: TransferError.self) { try await transport.check(unsigned, credentials: FixedCredentials()) }
        #expect(refused?.failureClass == .credentials)
        let busy = await #expect(throws: TransferError.self) { try await transport.check(endpoint, credentials: FixedCredentials()) }
        #expect(busy?.failureClass == .transient)
        #expect(server.requests.map(\.method) == ["HEAD", "HEAD", "HEAD", "HEAD"])
        #expect(server.requests.map(\.path) == ["/in/", "/in/", "/in/", "/in/"])
        server.stop()
        await transport.shutdown()
    }
}
