import Testing
import TransferCore
import TransportSupport
import TransportTUS

@Suite struct OptionTests {
    private static let nonDefaults = TUSOptions(
        chunkSize: 52_428_800, chunkMultiple: 262_144, singleRequestSize: 0, methodOverride: true,
        extensions: [.creation, .checksumTrailer], dialect: .ietf, creationMethod: .put,
        requests: RequestOptions(
            network: NetworkOptions(
                proxy: .url("socks5h://proxy.example.com:1080"), proxyUser: "me", proxyExceptions: ["localhost", "10.0.0.0/8"],
                interface: "eth1", addressFamily: .ipv6),
            caFile: "/etc/ca.pem", pinnedPublicKeys: ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="], insecure: true,
            clientCertificate: "/etc/certificate.pem", clientKey: "/etc/key.pem", httpVersion: .http2, headers: ["X-Studio": "north"],
            origins: ["https://a.example.com", "https://b.example.com:8443"], parallelThreshold: 1, contentDisposition: true))

    @Test func writesAndReadsAllSettings() throws {
        let settings = Self.nonDefaults.settings
        #expect(settings.keys.map { $0.hasPrefix("header.") ? "header.NAME" : $0 }.sorted() == TUSTransport.settings.map(\.name))
        #expect(try TUSOptions(settings: settings) == Self.nonDefaults)
        #expect(TUSOptions().settings == [:])
        #expect(try TUSOptions(settings: [:]) == TUSOptions())
    }

    @Test func endpointContainsSettings() throws {
        let endpoint = Endpoint.tus("https://upload.example.com/", credentials: .bearer(.environment("T")), options: Self.nonDefaults)
        #expect(endpoint.settings == Self.nonDefaults.settings && endpoint.credentials.count == 1)
        try TUSTransport.validate(endpoint)
    }

    @Test(arguments: [("chunksize", "chunkSize"), ("headers.X-A", "header.NAME"), ("htpVersion", "httpVersion")])
    func suggestsNearestSetting(name: String, nearest: String) {
        let error = #expect(throws: TransferError.self) { try TUSOptions(settings: [name: "1"]) }
        #expect(error?.message.contains("Did you mean \(nearest)?") == true)
    }

    @Test func writesAndReadsLackOfExtensions() throws {
        #expect(TUSOptions(extensions: []).settings == ["extensions": "none"])
        #expect(try TUSOptions(settings: ["extensions": "none"]).extensions == [])
        #expect(try TUSOptions(settings: ["extensions": "Creation, termination"]).extensions == [.creation, .termination])
        for text in ["", "creation,teleportation"] {
            let error = #expect(throws: TransferError.self) { try TUSOptions(settings: ["extensions": text]) }
            #expect(error?.message.contains("concatenation-unfinished") == true)
        }
    }

    @Test(arguments: [
        TUSOptions(chunkSize: 0), TUSOptions(chunkSize: 100, chunkMultiple: 101), TUSOptions(singleRequestSize: -1),
        TUSOptions(requests: RequestOptions(caFile: "")), TUSOptions(requests: RequestOptions(clientKey: "/key.pem")),
        TUSOptions(requests: RequestOptions(headers: ["Tus-Resumable": "2"])),
        TUSOptions(requests: RequestOptions(origins: ["https://me:secret@host/"])),
        TUSOptions(requests: RequestOptions(network: NetworkOptions(proxyUser: "me"))),
    ])
    func rejectsInvalidOptions(options: TUSOptions) {
        let error = #expect(throws: TransferError.self) { try TUSTransport.validate(.tus("https://host/", options: options)) }
        #expect(error?.code == .invalidEndpoint)
        #expect(error?.message.contains("secret") == false)
    }
}
