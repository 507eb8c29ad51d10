import Testing
import TransferCore
import TransportHTTP
import TransportSupport

@Suite struct OptionTests {
    private static let sessionOptions = HTTPOptions(
        upload: .form, fileField: "reel", fields: ["title": "Day one", "a.b": ""],
        files: ["picture": ["{source}.jpg"], "papers": ["/srv/a.pdf", "/srv/b.pdf"]], contentType: "video/quicktime",
        metadataPrefix: "x-amz-meta-", acceptedStatuses: [302, 303], transferTimeout: .seconds(90.5),
        uploadURLs: ["a.mov": "https://host/a?signature=needle"], responseLimit: 65_536, uploadCheck: .head,
        repeatsUnknownOutcomes: true,
        requests: RequestOptions(parallelThreshold: 1, contentDisposition: true))

    private static var endpointOptions: HTTPOptions {
        var options = sessionOptions
        options.upload = nil
        options.uploadURLs = [:]
        options.webDAV = true
        options.requests = RequestOptions(
            network: NetworkOptions(
                proxy: .direct, proxyUser: "me", proxyExceptions: [], interface: "127.0.0.1", addressFamily: .ipv4),
            caFile: "/etc/ca.pem", pinnedPublicKeys: ["AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="], insecure: true,
            clientCertificate: "/etc/certificate.pem", clientKey: "/etc/key.pem", httpVersion: .http2, headers: ["X-Studio": "north"],
            origins: ["https://a.example.com"], parallelThreshold: 1, contentDisposition: true)
        return options
    }

    private func names(_ options: HTTPOptions) -> [String] {
        Set(options.settings.keys.map { key in key.firstIndex(of: ".").map { "\(key[..<$0]).NAME" } ?? key }).sorted()
    }

    @Test func writesAndReadsAllSettings() throws {
        #expect(try HTTPOptions(settings: Self.endpointOptions.settings) == Self.endpointOptions)
        #expect(names(Self.endpointOptions) == HTTPTransport.settings.filter(\.isForEndpoints).map(\.name))
        #expect(try HTTPOptions(settings: [:], session: Self.sessionOptions.settings) == Self.sessionOptions)
        #expect(names(Self.sessionOptions) == HTTPTransport.settings.filter(\.isForSessions).map(\.name))
        #expect(HTTPOptions().settings == [:])
        try HTTPTransport.validate(.http("https+form://host/", options: Self.endpointOptions))
    }

    @Test func sessionSettingsTakePrecedence() throws {
        let options = try HTTPOptions(
            settings: HTTPOptions(fileField: "upload", fields: ["a": "1", "b": "1"]).settings,
            session: HTTPOptions(upload: .put, fileField: "reel", fields: ["b": "2"]).settings)
        #expect(options == HTTPOptions(upload: .put, fileField: "reel", fields: ["a": "1", "b": "2"]))
    }

    @Test(arguments: [("uplaod", "upload"), ("filefield", "fileField"), ("fields.a", "field.NAME"), ("uploadUrl.a", "uploadURL.NAME")])
    func suggestsNearestSetting(name: String, nearest: String) {
        let error = #expect(throws: TransferError.self) { try HTTPOptions(settings: [:], session: [name: "https://host/needle"]) }
        #expect(error?.message.contains("Did you mean \(nearest)?") == true)
        #expect(error?.message.contains("needle") == false)
    }

    /// Anyone who has an upload URL can upload to it.
    @Test func doesNotPrintURLs() {
        var dumped = ""
        dump(Self.sessionOptions, to: &dumped)
        for text in ["\(Self.sessionOptions)", String(reflecting: Self.sessionOptions), dumped] {
            #expect(text.contains("a.mov") && !text.contains("needle"), "\(text)")
        }
        let error = #expect(throws: TransferError.self) { try HTTPOptions(settings: [:], session: ["uploadURL.a": "ftp://host/needle"]) }
        #expect(error?.message.contains("uploadURL.a") == true && error?.message.contains("needle") == false)
    }

    @Test(arguments: [
        HTTPOptions(upload: .form), HTTPOptions(uploadURLs: ["a": "https://host/needle"]), HTTPOptions(fileField: ""),
        HTTPOptions(files: ["a": ["relative"]]), HTTPOptions(files: ["a": []]), HTTPOptions(acceptedStatuses: [200]),
        HTTPOptions(transferTimeout: .zero), HTTPOptions(metadataPrefix: "x: "), HTTPOptions(responseLimit: -1),
        HTTPOptions(responseLimit: 262_145),
    ])
    func rejectsInvalidOptions(options: HTTPOptions) {
        let error = #expect(throws: TransferError.self) { try HTTPTransport.validate(.http("https+put://host/", options: options)) }
        #expect(error?.code == .invalidEndpoint && error?.message.contains("needle") == false)
    }
}
