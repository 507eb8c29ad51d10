import Foundation
import TUSLoopback
import Testing

/// Limits of the server: the size of a file, and the host names that it accepts.
@Suite struct LoopbackLimitTests {
    @Test func `rejects partial uploads whose total size exceeds the maximum size of a file`() async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            let headers = ["Upload-Length": "\(Int64.max)", "Upload-Concat": "partial"]
            let partials = try (0..<3).map { _ in try #require(connection.request("POST", "/files/", headers).headers["location"]) }
            let final = try connection.request("POST", "/files/", ["Upload-Concat": "final;\(partials.joined(separator: " "))"])
            #expect((400..<500).contains(final.status), "\(final)")
            #expect(try connection.request("OPTIONS", "/files/").status == 204)
        }
    }

    @Test(arguments: [
        ("upload.example.com", 421), ("127.0.0.1.example.com", 421), ("localhost.example.com", 421), ("1270.0.0.1", 421),
        ("10.0.0.1:80", 421),
        ("joe@127.0.0.1", 421), ("localhost", 204), ("127.0.0.1:1", 204), ("[::1]:80", 204), ("127.8.9.10", 204),
    ])
    func `accepts only loopback hosts`(host: String, status: Int) async throws {
        try await withServer { _, url in
            let connection = try RawConnection(to: url)
            try connection.send("OPTIONS /files/ HTTP/1.1\r\nHost: \(host)\r\nTus-Resumable: 1.0.0\r\n\r\n")
            let response = try connection.readResponse()
            #expect(response.status == status || status == 421 && response.status == 400, "\(response)")
        }
    }
}
