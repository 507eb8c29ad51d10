import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

/// Listings from faulty or malicious WebDAV servers.
@Suite struct HostileMultistatusTests {
    @Test(arguments: [
        "/etc/passwd", "/dav/in/other/x", "/dav/in/%C3%A4/../x", "/dav/in/%C3%A4/%2e%2e/x", "/dav/in/%C3%A4/x/y", "/dav/in", "/", "../x",
        "x/y",
        "http://example.org/dav/in/%C3%A4/x", "http://me@127.0.0.1/dav/in/%C3%A4/x", "//example.org/dav/in/%C3%A4/x",
        "ftp://127.0.0.1/dav/in/%C3%A4/x",
        "javascript:x", "/DAV/in/%C3%A4/x",
    ])
    func rejectsMembersOutsideFolder(href: String) async throws {
        let listing = try TestListing(TestListing.multistatus(TestListing.member(href)))
        let error = await listing.failure()
        #expect(error?.failureClass == .protocolViolation && error?.code == .invalidResponse, "\(String(describing: error))")
        #expect(error?.message.contains("not directly in the folder") == true)
        await listing.end()
    }

    /// The queue checks these names, so the transport only decodes them. A name is not used as a URL, so it can't refer to another folder.
    @Test(arguments: [
        ("..", ".."), ("%2E%2E", ".."), ("..%2Fout", "../out"), ("%2Fetc%2Fpasswd", "/etc/passwd"), ("nul%00", "nul\0"), (".", "."),
    ])
    func passesUnsafeNamesToQueue(href: String, name: String) async throws {
        let listing = try TestListing(TestListing.multistatus(TestListing.member(TestListing.path + href)))
        #expect(try await listing.names() == [name])
        await listing.end()
    }

    @Test(arguments: ["9223372036854775808", "18446744073709551616", "-1", "5 bytes", "0x5", "", "NaN", "1e3"])
    func treatsImpossibleSizesAsUnknown(size: String) async throws {
        let listing = try TestListing(TestListing.multistatus(TestListing.member(TestListing.path + "a", size: size)))
        let (entries, error) = await listing.run()
        #expect(error == nil && entries.map(\.kind) == [.file(size: nil)])
        await listing.end()
    }

    @Test func passesLargestSizeAndRepeatedNames() async throws {
        let member = TestListing.member(TestListing.path + "a", size: "9223372036854775807")
        let listing = try TestListing(TestListing.multistatus(member, member))
        let (entries, error) = await listing.run()
        #expect(error == nil && entries.map(\.kind) == [.file(size: .max), .file(size: .max)])
        await listing.end()
    }

    private static let root = "<D:multistatus xmlns:D=\"DAV:\">"

    private static let end = "</D:multistatus>"
    private static let listing = "\(root)\(TestListing.member(TestListing.path, isFolder: true))\(end)"

    private static func document(_ content: String) -> String { "\(root)\(content)\(end)" }

    private static let incomplete: [(String, String)] = [
        ("", "ends early"), ("  ", "ends early"), (root, "ends early"), ("\(root)</D:multistatus", "ends early"),
        (document("<![CDATA[a"), "ends early"), ("{}", "is not XML"), ("\(listing)text", "is not XML"),
        ("<html><body>Sign in</body></html>", "is not a WebDAV response"), ("<multistatus/>", "is not a WebDAV response"),
        ("<a xmlns='DAV:'/>", "is not a WebDAV response"), (document(""), "does not mention the folder"),
        ("\(listing)\(root)", "more than one root"), (document("<D:response/>"), "without a URL"),
        (document("<D:response><D:href/></D:response>"), "empty"),
        (document("<D:response><D:href>/a</D:href><D:href>/b</D:href></D:response>"), "several URLs"),
    ]

    /// The server can't list the folder, or can't list all of its members.
    @Test(arguments: [403, 404, 500, 507]) func rejectsListingOfFailedFolder(status: Int) async throws {
        let folder = "<D:response><D:href>\(TestListing.path)</D:href><D:status>HTTP/1.1 \(status) X</D:status></D:response>"
        for members in ["", TestListing.member(TestListing.path + "a")] {
            let listing = try TestListing(Self.document(members + folder))
            let error = await listing.failure()
            #expect(error?.failureClass == .protocolViolation && error?.code == .invalidResponse, "\(String(describing: error))")
            #expect(error?.message.contains("reports status \(status) for the folder") == true)
            await listing.end()
        }
    }

    private static let malformed: [(String, String)] = [
        ("\(root)</D:response>", "an end tag without"), (document("<D:response></D:multistatus></D:response>"), "an end tag without"),
        ("<D:multistatus></D:multistatus>", "undeclared namespace"), (document("<x:y/>"), "undeclared namespace"),
        (document("&#0;"), "invalid reference"), (document("&#xD800;"), "invalid reference"), (document("&#x110000;"), "invalid reference"),
        (document("&#+65;"), "invalid reference"), (document("&amp"), "invalid reference"), (document("\u{1}"), "control character"),
        (document("<D:response a=b/>"), "invalid attribute"), (document("<D:response a='<'/>"), "invalid tag"),
        (document("<>"), "invalid tag"),
        (document("<D:response a='1' a='2'/>"), "an attribute twice"),
    ]

    private static let declarations: [(String, String)] = [
        ("<!DOCTYPE a [<!ENTITY b \"bb\"><!ENTITY c \"&b;&b;\">]>\(listing)", "has a document type"),
        ("<!DOCTYPE a SYSTEM \"file:///etc/passwd\">\(listing)", "has a document type"),
        (document("<!ENTITY a \"b\">"), "has a document type"), (document("&c;"), "invalid reference"),
        ("<?xml version=\"1.0\" encoding=\"iso-8859-1\"?>\(listing)", "not in UTF-8"),
        ("<?xml version=\"1.0\" encoding='utf-16'?>\(listing)", "not in UTF-8"),
        (" <?xml version=\"1.0\"?>\(listing)", "declaration after"),
    ]

    @Test(arguments: [incomplete, malformed, declarations].flatMap { $0 })
    func rejectsInvalidDocuments(document: String, reason: String) async throws {
        let listing = try TestListing(document)
        let error = await listing.failure()
        #expect(error?.failureClass == .protocolViolation && error?.code == .invalidResponse, "\(String(describing: error))")
        #expect(error?.message.contains(reason) == true, "\(String(describing: error))")
        await listing.end()
    }

    /// A construct in a document that never ends.
    enum Endless: CaseIterable {
        case depth, value, tag, text, reference, namespaces, brackets

        var text: String {
            let filler = String(repeating: "x", count: 100_000)
            return switch self {
            case .depth: String(repeating: "<D:a>", count: 1_000)
            case .value: "<D:a b='" + filler
            case .tag: "<D:" + filler
            case .text: "<D:response><D:href>" + filler
            case .reference: "&" + filler
            case .namespaces: "<D:a " + (0..<1_000).map { "xmlns:p\($0)='u'" }.joined(separator: " ") + ">"
            case .brackets: "<D:response><D:href><![CDATA[" + String(repeating: "]", count: 100_000)
            }
        }
    }

    /// Each limit ends the listing early, although the server would send more.
    @Test(arguments: Endless.allCases) func limitsMemory(endless: Endless) async throws {
        let listing = try TestListing { _, _ in
            [.raw("HTTP/1.1 207 Scripted\r\nContent-Length: 1000000000\r\n\r\n" + Self.root + endless.text), .silence]
        }
        let error = await listing.failure()
        #expect(error?.failureClass == .protocolViolation && error?.code == .invalidResponse, "\(String(describing: error))")
        await listing.end()
    }

    @Test func receiverStopsEndlessListing() async throws {
        let members = (0..<10_000).map { TestListing.member(TestListing.path + "\($0)") }.joined()
        let listing = try TestListing { _, _ in
            let head = "HTTP/1.1 207 Scripted\r\nTransfer-Encoding: chunked\r\n\r\n"
            let chunk = String(members.utf8.count, radix: 16) + "\r\n" + members + "\r\n"
            let root = String(Self.root.utf8.count, radix: 16) + "\r\n" + Self.root + "\r\n"
            return [.raw(head + root)] + [ServerStep](repeating: .raw(chunk), count: 10_000)
        }
        let (entries, error) = await listing.run(atMost: 5_000)
        #expect(error is TestListing.LimitReached && (5_000..<6_000).contains(entries.count))
        await listing.end()
    }

    /// The connection breaks in the middle of the response. The response then lacks some members of the folder.
    @Test func rejectsTruncatedListing() async throws {
        let body = TestListing.multistatus(TestListing.member(TestListing.path + "a"), TestListing.member(TestListing.path + "b"))
        let broken = try TestListing { _, _ in
            [.raw("HTTP/1.1 207 Scripted\r\nContent-Length: \(body.utf8.count)\r\n\r\n" + body.dropLast(100)), .close]
        }
        #expect(await broken.failure()?.failureClass == .transient)
        await broken.end()
        // Without a length, the end of the connection is the end of the response.
        let unknown = try TestListing { _, _ in [.raw("HTTP/1.1 207 Scripted\r\n\r\n" + body.dropLast(100)), .close] }
        #expect(await unknown.failure()?.failureClass == .protocolViolation)
        await unknown.end()
    }
}
