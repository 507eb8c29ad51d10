import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// How the client determines whether the server supports tus or Resumable Uploads for HTTP (dialect `ietf`), and which version of the latter.
/// The drafts have version numbers; the final protocol has none.
@Suite struct NegotiationTests {
    private static let done: [ServerStep] = [.answer(200, ["Upload-Complete": "?1"])]

    /// Returns an upload, and its server.
    ///
    /// - Parameters:
    ///   - options: Returns the response to an `OPTIONS` request with the given version; the version is nil if the request has none.
    ///   - script: Returns the responses to all other requests, numbered from 0.
    private func upload(
        dialect: String, now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        options: @escaping @Sendable (String?) -> [ServerStep], _ script: @escaping ScriptedServer.Script
    ) throws -> (ScriptedServer, TestUpload) {
        let count = Locked(0)
        let server = try ScriptedServer { request, _ in
            if request.method == "OPTIONS" { return options(request.headers["upload-draft-interop-version"]) }
            return script(
                request,
                count.withLock { count in
                    defer { count += 1 }
                    return count
                })
        }
        var upload = try TestUpload(size: 10, now: now) { _, _ in [] }
        upload.endpoint = .tus(server.url(), credentials: [])
        upload.endpoint.settings["dialect"] = dialect
        return (server, upload)
    }

    private func end(_ server: ScriptedServer, _ upload: TestUpload) async {
        server.stop()
        await upload.end()
    }

    private func summary(_ server: ScriptedServer) -> [String] {
        server.requests.map {
            "\($0.method) \($0.headers["upload-draft-interop-version"] ?? ($0.headers["tus-resumable"] == nil ? "-" : "tus"))"
        }
    }

    /// swift-nio-extras names its version in the rejection.
    @Test func usesVersionThatRejectionNames() async throws {
        let (server, upload) = try upload(dialect: "ietf") { version in
            version == "6" ? [.answer(200)] : [.answer(400, ["Upload-Draft-Interop-Version": "6"])]
        } _: { _, _ in
            Self.done
        }
        _ = try await upload.run()
        _ = try await upload.run()
        #expect(summary(server) == ["OPTIONS 10", "OPTIONS 6", "POST 6", "POST 6"])
        await end(server, upload)
    }

    @Test func triesLowerVersions() async throws {
        let (server, upload) = try upload(dialect: "ietf") { version in
            version == "8"
                ? [.answer(204, ["Accept-Patch": "text/a, application/partial-upload", "Upload-Draft-Interop-Version": "8"])]
                : [.answer(412)]
        } _: { _, _ in
            Self.done
        }
        _ = try await upload.run()
        #expect(summary(server) == ["OPTIONS 10", "OPTIONS 9", "OPTIONS 8", "POST 8"])
        await end(server, upload)
    }

    /// tusd responds to `OPTIONS` like a tus server, and rejects unknown versions when an upload is created.
    @Test(arguments: [400, 412]) func triesLowerVersionsOfCreation(status: Int) async throws {
        let (server, upload) = try upload(dialect: "ietf") { _ in
            [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation"])]
        } _: { request, _ in
            request.headers["upload-draft-interop-version"] == "6" ? Self.done : [.answer(status, ["Tus-Version": "1.0.0"])]
        }
        _ = try await upload.run()
        _ = try await upload.run()
        #expect(summary(server).filter { !$0.hasPrefix("OPTIONS") } == ["POST 10", "POST 9", "POST 8", "POST 6", "POST 6"])
        #expect(server.requests.count { $0.method == "OPTIONS" } == 1)
        await end(server, upload)
    }

    @Test func namesVersionsOfBothSides() async throws {
        let (server, upload) = try upload(dialect: "ietf") { _ in
            [.answer(404)]
        } _: { _, _ in
            [.answer(412, ["Tus-Version": "1.0.0", "Upload-Draft-Interop-Version": "2"])]
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .unsupported && error?.code == .unsupportedVersion)
        #expect(error?.message.contains("draft versions 10, 9, 8, 6, 5, 3, and the final one") == true, "\(error?.message ?? "")")
        #expect(error?.message.contains("it supports draft version 2 of Resumable Uploads for HTTP and tus 1.0.0") == true)
        #expect(summary(server).filter { $0.hasPrefix("POST") }.count == 7)
        await end(server, upload)
    }

    /// A rejection of the file is not a rejection of the version.
    @Test func reportsRejectionWithKnownVersion() async throws {
        let (server, upload) = try upload(dialect: "ietf") { _ in
            [.answer(204, ["Upload-Draft-Interop-Version": "10"])]
        } _: { _, _ in
            [.answer(400, ["Upload-Draft-Interop-Version": "10"], body: "bad name")]
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .permanent && error?.cause?.contains("bad name") == true)
        #expect(server.requests.count { $0.method == "POST" } == 1)
        await end(server, upload)
    }

    @Test func prefersTUS() async throws {
        let (server, upload) = try upload(dialect: "auto") { _ in
            [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation", "Accept-Patch": "application/partial-upload"])]
        } _: { request, _ in
            request.method == "POST" ? [.created] : [.accepted(10)]
        }
        _ = try await upload.run()
        #expect(summary(server) == ["OPTIONS -", "POST tus", "PATCH tus"])
        let report = try await upload.transport.check(upload.endpoint, credentials: upload.credentials)
        #expect(report.version == "1.0.0" && report.otherVersions == ["Resumable Uploads for HTTP (draft version 10)"])
        await end(server, upload)
    }

    @Test func findsOtherProtocolByOPTIONS() async throws {
        let (server, upload) = try upload(dialect: "auto") { version in
            [
                .answer(
                    204,
                    ["Accept-Patch": "application/partial-upload"].merging(version.map { ["Upload-Draft-Interop-Version": $0] } ?? [:]) {
                        $1
                    })
            ]
        } _: { _, _ in
            Self.done
        }
        _ = try await upload.run()
        _ = try await upload.run()
        #expect(summary(server) == ["OPTIONS -", "OPTIONS 10", "POST 10", "POST 10"])
        await end(server, upload)
    }

    @Test func findsOtherProtocolByRejectedCreation() async throws {
        let (server, upload) = try upload(dialect: "auto") { version in
            version == nil ? [.answer(404)] : [.answer(200, ["Upload-Limit": "max-size=100", "Upload-Draft-Interop-Version": "6"])]
        } _: { request, _ in
            request.headers["tus-resumable"] == nil ? Self.done : [.answer(404)]
        }
        _ = try await upload.run()
        _ = try await upload.run()
        #expect(summary(server) == ["OPTIONS -", "POST tus", "OPTIONS 10", "POST 6", "POST 6"])
        await end(server, upload)
    }

    @Test(arguments: ["auto", "tus"]) func reportsMissingProtocol(dialect: String) async throws {
        let (server, upload) = try upload(dialect: dialect) { _ in
            [.answer(404)]
        } _: { _, _ in
            [.answer(404)]
        }
        let error = await upload.failure()
        #expect(error?.failureClass == .unreachable && error?.message.contains("no tus endpoint") == true)
        #expect(summary(server) == ["OPTIONS -", "POST tus"] + (dialect == "auto" ? ["OPTIONS 10"] : []))
        await end(server, upload)
    }

    @Test func remembersVersionForOneDay() async throws {
        let start = ContinuousClock.now
        let now = Locked(start)
        let (server, upload) = try upload(dialect: "ietf", now: { now.withLock { $0 } }) { _ in
            [.answer(204, ["Upload-Draft-Interop-Version": "10"])]
        } _: { _, _ in
            Self.done
        }
        _ = try await upload.run()
        now.withLock { $0 = start + .seconds(86_399) }
        _ = try await upload.run()
        #expect(server.requests.count { $0.method == "OPTIONS" } == 1)
        now.withLock { $0 = start + .seconds(2 * 86_401) }
        _ = try await upload.run()
        #expect(server.requests.count { $0.method == "OPTIONS" } == 2)
        await end(server, upload)
    }

    /// The server's software is replaced while the transport still remembers the earlier version. New uploads use the new version.
    @Test(arguments: [true, false]) func findsVersionOfUpdatedServer(namesVersion: Bool) async throws {
        let current = Locked("6")
        let (server, upload) = try upload(dialect: "ietf") { version in
            [.answer(version == "6" ? 204 : 400, ["Upload-Draft-Interop-Version": "6"])]
        } _: { request, _ in
            let version = current.withLock { $0 }
            if request.headers["upload-draft-interop-version"] == version { return Self.done }
            return [.answer(namesVersion ? 400 : 412, namesVersion ? ["Upload-Draft-Interop-Version": version] : [:])]
        }
        _ = try await upload.run()
        current.withLock { $0 = "8" }
        _ = try await upload.run()
        _ = try await upload.run()
        let tried = namesVersion ? ["POST 8"] : ["POST 10", "POST 9", "POST 8"]
        #expect(summary(server) == ["OPTIONS 10", "OPTIONS 6", "POST 6", "POST 6"] + tried + ["POST 8"])
        await end(server, upload)
    }

    /// An interim response without a version shows that the server supports the final protocol. Later uploads use this protocol.
    @Test func learnsFinalProtocolFromInterimResponse() async throws {
        let (server, upload) = try upload(dialect: "ietf") { _ in
            [.answer(204, ["Accept-Patch": "application/partial-upload"])]
        } _: { request, _ in
            let isLast = request.headers["upload-complete"] == "?1"
            return [.raw(ResourceServer.interim("final"))] + (isLast ? Self.done : [.answer(201, ["Location": "/up/1"])])
        }
        _ = try await upload.run()
        _ = try await upload.run()
        #expect(summary(server) == ["OPTIONS 10", "POST 10", "PATCH 10", "POST -"])
        await end(server, upload)
    }

    /// An unfinished upload resumes in its own version, regardless of the current settings.
    @Test func resumesInVersionOfCheckpoint() async throws {
        var upload = try TestUpload.resource(size: 10, version: "10") { request, _ in
            request.method == "HEAD" ? [.answer(204, ["Upload-Offset": "4", "Upload-Incomplete": "?1"])] : [.answer(201)]
        }
        upload.endpoint.settings["dialect"] = "tus"
        let stored = ["url": upload.server.url("/up/1"), "dialect": "ietf-3"]
        _ = try await upload.run(from: Checkpoint(data: try JSONEncoder().encode(stored), confirmed: 0))
        #expect(upload.requests.map { "\($0.method) \($0.headers["upload-draft-interop-version"] ?? "")" } == ["HEAD 3", "PATCH 3"])
        #expect(upload.requests.last?.headers["upload-incomplete"] == "?0")
        #expect(upload.featureRequests == 0)
        await upload.end()
    }
}
