import Foundation
import Locking
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Servers that changed from tus to the IETF protocol *Resumable Uploads for HTTP*, or the reverse, at the same address. Unfinished uploads
/// restart, and new uploads use the new protocol.
@Suite struct ProtocolChangeTests {
    /// A server whose protocol the test changes: `tus`, or a version of the IETF protocol.
    private final class Server: Sendable {
        let current: Locked<String>
        /// The offset in the tus server's response to `HEAD`. Such a server accepts `HEAD` without a version, like tusd. If nil, the server
        /// rejects requests without a version.
        let lenientOffset: Int?
        private let resource = Locked<ResourceServer?>(nil)

        init(_ current: String, lenientOffset: Int? = nil) {
            self.current = Locked(current)
            self.lenientOffset = lenientOffset
        }

        func steps(_ request: ReceivedRequest) -> [ServerStep] {
            let current = current.withLock { $0 }
            return current == "tus" ? tus(request) : ietf(request, current)
        }

        private func tus(_ request: ReceivedRequest) -> [ServerStep] {
            if request.method == "OPTIONS" { return [.tus(204, ["Tus-Version": "1.0.0", "Tus-Extension": "creation"])] }
            if let lenientOffset, request.method == "HEAD" { return [.offset(lenientOffset, of: 10)] }
            guard request.headers["tus-resumable"] != nil else {
                return [lenientOffset == nil ? .answer(412, ["Tus-Version": "1.0.0"]) : .tus(412)]
            }
            return [request.method == "POST" ? .created : .accepted(10)]
        }

        private func ietf(_ request: ReceivedRequest, _ version: String) -> [ServerStep] {
            let (isFinal, given) = (version == "final", request.headers["upload-draft-interop-version"])
            if !isFinal, given != version { return [.answer(400, ["Upload-Draft-Interop-Version": version])] }
            if request.method == "OPTIONS" { return ResourceServer.options(version) }
            // The final protocol has no version that a rejection could name.
            if request.headers["tus-resumable"] != nil { return [.answer(request.method == "POST" ? 400 : 405)] }
            let server = resource.withLock { resource in
                let server = resource ?? ResourceServer(version: version, announces: given == nil ? isFinal : !isFinal, "", nil)
                resource = server
                return server
            }
            return server.steps(request)
        }
    }

    private func open(_ server: Server, dialect: String) throws -> (ScriptedServer, TestUpload) {
        let scripted = try ScriptedServer { request, _ in server.steps(request) }
        var upload = try TestUpload(size: 10) { _, _ in [] }
        upload.endpoint = .tus(scripted.url(), credentials: [])
        upload.endpoint.settings["dialect"] = dialect
        return (scripted, upload)
    }

    private func end(_ server: ScriptedServer, _ upload: TestUpload) async {
        server.stop()
        await upload.end()
    }

    private func checkpoint(_ name: String, _ server: ScriptedServer, mayBeComplete: Bool = false, hasURL: Bool = true) -> Checkpoint {
        var fields = ["\"confirmed\":\(hasURL ? 4 : 0)"]
        if hasURL { fields.append("\"url\":\"\(server.url("/files/1"))\"") }
        if name != "tus" { fields.append("\"dialect\":\"ietf-\(name)\"") }
        if mayBeComplete { fields.append("\"mayBeComplete\":true") }
        return Checkpoint(data: Data("{\(fields.joined(separator: ","))}".utf8), confirmed: hasURL ? 4 : 0)
    }

    private func protocolOfLastCreation(_ server: ScriptedServer) -> String? {
        server.requests.last { $0.method == "POST" }.map {
            $0.headers["tus-resumable"] != nil ? "tus" : $0.headers["upload-draft-interop-version"] ?? "final"
        }
    }

    private static let changes = [("tus", "3"), ("tus", "8"), ("tus", "final"), ("3", "tus"), ("8", "tus"), ("final", "tus")]

    /// The transport may know the earlier software of the server from another upload.
    @Test(arguments: changes, [true, false]) func restartsUpload(change: (old: String, new: String), isKnown: Bool) async throws {
        let server = Server(change.old)
        let (scripted, upload) = try open(server, dialect: "auto")
        if isKnown { _ = try await upload.run() }
        server.current.withLock { $0 = change.new }
        let error = await upload.failure(from: checkpoint(change.old, scripted))
        #expect(error?.failureClass == .resumeLost, "\(String(describing: error))")
        let expected =
            change.new == "tus" ? "now speaks tus 1.0.0 instead of Resumable Uploads for HTTP" : "now speaks Resumable Uploads for HTTP"
        #expect(error?.message.contains(expected) == true, "\(error?.message ?? "")")
        // Restarts the file, as the queue would.
        #expect(try await upload.run().bytes == 10)
        let newest = change.new == "final" ? "10" : change.new
        #expect(protocolOfLastCreation(scripted) == newest)
        // The failed attempt has found the new protocol, so the restart tries no other protocol.
        let creations = scripted.requests.filter { $0.method == "POST" && $0.headers["tus-resumable"] != nil }
        if change.old == "tus" { #expect(creations.count == (isKnown ? 1 : 0)) }
        // The transport now knows the new protocol.
        let count = scripted.requests.count { $0.method == "POST" }
        _ = try await upload.run()
        #expect(scripted.requests.count { $0.method == "POST" } == count + 1)
        await end(scripted, upload)
    }

    /// The last request of a tus upload had no response. If all remaining bytes were sent, the earlier server may have the whole file, and a
    /// restart could store the file twice.
    @Test(arguments: [(5, "resumeLost"), (6, "permanent")]) func restartsNoUploadThatMayBeComplete(accepted: Int, failureClass: String)
        async throws
    {
        let (scripted, upload) = try open(Server("8"), dialect: "auto")
        let unanswered = #"{"offset":4,"taken":\#(accepted)}"#
        let data = #"{"confirmed":4,"url":"\#(scripted.url("/files/1"))","unanswered":\#(unanswered)}"#
        let error = await upload.failure(from: Checkpoint(data: Data(data.utf8), confirmed: 4))
        #expect(error?.failureClass.rawValue == failureClass, "\(String(describing: error))")
        #expect((error?.code == .outcomeUnknown) == (accepted == 6))
        #expect(!scripted.requests.contains { $0.method == "POST" && $0.headers["tus-resumable"] == nil && !$0.body.isEmpty })
        await end(scripted, upload)
    }

    /// The transport still knows the earlier software of the server. No file fails.
    @Test(arguments: changes) func sendsNewFilesWithNewProtocol(old: String, new: String) async throws {
        let server = Server(old)
        let (scripted, upload) = try open(server, dialect: "auto")
        _ = try await upload.run()
        server.current.withLock { $0 = new }
        #expect(try await upload.run().bytes == 10)
        let count = scripted.requests.count { $0.method == "POST" }
        _ = try await upload.run()
        #expect(scripted.requests.count { $0.method == "POST" } == count + 1)
        #expect(protocolOfLastCreation(scripted) == (new == "final" ? "10" : new))
        await end(scripted, upload)
    }

    /// The endpoint's setting allows only one protocol. If the setting allows the new protocol, the upload restarts. Otherwise, the file fails but
    /// keeps its upload, because the server's old software may return.
    @Test(arguments: changes, ["tus", "ietf"])
    func restartsOnlyIfSettingAllowsNewProtocol(change: (old: String, new: String), dialect: String) async throws {
        let server = Server(change.new)
        let (scripted, upload) = try open(server, dialect: dialect)
        let error = await upload.failure(from: checkpoint(change.old, scripted))
        let isUsable = (change.new == "tus") == (dialect == "tus")
        if isUsable {
            #expect(error?.failureClass == .resumeLost, "\(String(describing: error))")
            #expect(try await upload.run().bytes == 10)
        } else {
            let failureClass: FailureClass = change.new == "tus" ? .unsupported : .unreachable
            #expect(error?.failureClass == failureClass, "\(String(describing: error))")
            let expected =
                change.new == "tus"
                ? "it supports tus 1.0.0" : "instead of tus 1.0.0 at this address; use auto or ietf in the setting dialect"
            #expect(error?.message.contains(expected) == true, "\(error?.message ?? "")")
            #expect(upload.recorder.checkpoints.isEmpty)
            #expect(scripted.requests.count { $0.method == "POST" } == 0)
            server.current.withLock { $0 = change.old }
            guard change.old == "tus" else { return await end(scripted, upload) }
            #expect(try await upload.run(from: checkpoint(change.old, scripted)).bytes == 10)
            #expect(scripted.requests.count { $0.method == "POST" } == 0)
        }
        await end(scripted, upload)
    }

    /// The old server may have completed the upload, unless the new server reports an incomplete upload. A restart could store the file twice.
    @Test(arguments: [nil, 4, 10]) func reportsUnknownOutcome(lenientOffset: Int?) async throws {
        let server = Server("tus", lenientOffset: lenientOffset)
        let (scripted, upload) = try open(server, dialect: "auto")
        let error = await upload.failure(from: checkpoint("8", scripted, mayBeComplete: true))
        #expect(lenientOffset == 4 ? error?.failureClass == .resumeLost : error?.code == .outcomeUnknown, "\(String(describing: error))")
        await end(scripted, upload)
    }

    /// The server was replaced after it had completed the upload. The file is unverified, and does not restart.
    @Test func doesNotRestartCompleteUpload() async throws {
        var upload = try TestUpload.resource(size: 10) { request, _ in
            switch request.method {
            case "POST": [.answer(201, ["Location": "/up/1", "Upload-Complete": "?0"])]
            case "HEAD": [.answer(412, ["Tus-Version": "1.0.0"])]
            default: [.answer(200, ["Upload-Complete": "?1"])]
            }
        }
        upload.endpoint.settings["dialect"] = "auto"
        upload.options.creation = .separate
        upload.options.verification = .checksum
        let error = await upload.failure()
        #expect(error?.failureClass == .unsupported && error?.message.contains("Repr-Digest") == true, "\(String(describing: error))")
        await upload.end()
    }

    /// tusd responds to `HEAD` without a version. The rejection of `PATCH` shows that the upload can't continue.
    @Test func restartsAfterRejectionOfContent() async throws {
        let server = Server("tus", lenientOffset: 4)
        let (scripted, upload) = try open(server, dialect: "auto")
        let error = await upload.failure(from: checkpoint("8", scripted))
        #expect(
            error?.failureClass == .resumeLost && error?.message.contains("now speaks tus 1.0.0") == true, "\(String(describing: error))")
        #expect(scripted.requests.map(\.method).prefix(3) == ["HEAD", "PATCH", "HEAD"])
        #expect(try await upload.run().bytes == 10)
        await end(scripted, upload)
    }

    /// An earlier attempt was interrupted before the server announced the upload.
    @Test(arguments: ["auto", "tus"]) func restartsInterruptedCreation(dialect: String) async throws {
        let server = Server("tus")
        let (scripted, upload) = try open(server, dialect: dialect)
        #expect(try await upload.run(from: checkpoint("8", scripted, hasURL: false)).bytes == 10)
        #expect(protocolOfLastCreation(scripted) == "tus")
        await end(scripted, upload)
    }

    /// A tus server may omit its version from a rejection, and another service may respond temporarily.
    @Test(arguments: ["tus", "other"]) func keepsUploadOfServerThatSpeaksTUS(kind: String) async throws {
        let upload = try TestUpload(
            size: 10, options: kind == "tus" ? [.tus(204, ["Tus-Version": "1.0.0"])] : [.answer(200, ["Accept-Patch": "text/a"])]
        ) { _, _ in [.answer(405)] }
        let error = await upload.failure(from: try upload.checkpoint(confirmed: 4))
        #expect(error?.failureClass == .permanent && error?.message.contains("does not allow HEAD") == true, "\(String(describing: error))")
        #expect(upload.recorder.checkpoints.isEmpty)
        await upload.end()
    }
}
