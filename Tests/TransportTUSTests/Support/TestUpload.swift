import CurlEngine
import Foundation
import Locking
import Logging
import ScriptedHTTP
import TransferCore
import TransportSupport
import TransportTUS

/// An upload of one file to a scripted server.
///
/// Two kinds of requests bypass the script, and are missing from ``requests``: `OPTIONS` requests, and the request that tests whether checksums
/// arrive in trailers.
struct TestUpload {
    let transport: TUSTransport
    let file: TemporaryFile
    let server: ScriptedServer
    var recorder = Recorder()
    var endpoint: Endpoint
    var credentials = FixedCredentials()
    var options = AttemptOptions()
    var remotePath = "a.bin"
    var number = 1
    /// The position of the item in the session, counted from 0.
    var item: Int64 = 3
    /// Whether an earlier transfer of the file may have left content.
    var isRestarted = false
    var logger = Logger(label: "test")
    var allowance: @Sendable (Int) -> Allowance = { Allowance(bytes: $0) }

    /// - Parameters:
    ///   - offers: The extensions of the server, or nil for a server without `OPTIONS`.
    ///   - features: Further headers of the response to `OPTIONS`.
    ///   - options: The server's steps for each `OPTIONS`, in place of `offers`.
    ///   - headers: The app's header hook.
    ///   - trial: The server's steps for the test of trailers. By default, trailers arrive.
    ///   - headLimit: Passed to ``ScriptedServer``. The numbers of requests include `OPTIONS` requests.
    init(
        size: Int, offers: String? = nil, features: [String: String] = [:],
        options: @autoclosure @escaping @Sendable () -> [ServerStep]? = nil, headers: HeaderHook? = nil,
        disks: DiskThreads = DiskThreads(limit: 4), now: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        trial: [ServerStep] = [.tus(460)], headLimit: @escaping @Sendable (_ number: Int) -> Int? = { _ in nil },
        _ script: @escaping ScriptedServer.Script
    ) throws {
        transport = TUSTransport(headers: headers, disks: disks, now: now)
        file = try TemporaryFile(size: size)
        let (count, isTried) = (Locked(0), Locked(false))
        let optionsResponse: ServerStep =
            offers.map { offers in
                .tus(204, features.merging(["Tus-Version": "1.0.0", "Tus-Extension": offers]) { given, _ in given })
            } ?? .answer(404)
        server = try ScriptedServer(headLimit: headLimit) { request, _ in
            if request.method == "OPTIONS" { return options() ?? [optionsResponse] }
            let isTrial = isTried.withLock { isTried in
                defer { isTried = isTried || request.headers["trailer"] != nil }
                return !isTried && request.headers["trailer"] != nil
            }
            if isTrial { return trial }
            let number = count.withLock { count in
                defer { count += 1 }
                return count
            }
            return script(request, number)
        }
        endpoint = .tus(server.url(), credentials: [])
    }

    init(
        size: Int, offers: String? = nil, features: [String: String] = [:],
        options: @autoclosure @escaping @Sendable () -> [ServerStep]? = nil, headers: HeaderHook? = nil,
        answers: [[ServerStep]]
    ) throws {
        try self.init(size: size, offers: offers, features: features, options: options(), headers: headers) { _, number in
            number < answers.count ? answers[number] : [.silence]
        }
    }

    /// Runs one attempt.
    ///
    /// - Parameter other: A transport that performs the attempt in place of this upload's transport.
    func run(
        from checkpoint: Checkpoint? = nil, source: UploadSource? = nil, by other: TUSTransport? = nil
    ) async throws -> TransferReceipt {
        let attempt = FileAttempt(
            transferID: "t-1", number: number, isRestarted: isRestarted, endpoint: endpoint, source: try source ?? file.source,
            remotePath: try RemotePath(remotePath), checkpoint: checkpoint, options: options,
            origin: AttemptOrigin(session: "s-1", item: item, context: Data("{}".utf8)),
            credentials: credentials, logger: logger)
        return try await (other ?? transport).perform(attempt, reporting: recorder.reporter(allowance: allowance))
    }

    /// Runs one attempt, and returns its error. Returns nil if the attempt succeeds or fails with an error of a different type.
    func failure(from checkpoint: Checkpoint? = nil, source: UploadSource? = nil) async -> TransferError? {
        do {
            _ = try await run(from: checkpoint, source: source)
            return nil
        } catch {
            return error as? TransferError
        }
    }

    /// A checkpoint of the upload `/files/1`, in the transport's format.
    func checkpoint(confirmed: Int64 = 0) throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(["url": server.url("/files/1")]), confirmed: confirmed)
    }

    /// All requests except `OPTIONS` and ``trials``.
    var requests: [ReceivedRequest] { server.requests.filter { $0.method != "OPTIONS" && !$0.isTrial } }

    /// The requests that test whether checksums arrive in trailers.
    var trials: [ReceivedRequest] { server.requests.filter(\.isTrial) }

    var featureRequests: Int { server.requests.count { $0.method == "OPTIONS" } }

    var methods: [String] { requests.map(\.method) }

    func end() async {
        await transport.shutdown()
        server.stop()
    }
}

extension ReceivedRequest {
    /// Whether the request contains a checksum but no content.
    fileprivate var isTrial: Bool { headers["trailer"] != nil && body.isEmpty && !trailers.isEmpty }
}

extension ServerStep {
    static let created = tus(201, ["Location": "/files/1"])

    static func offset(_ offset: Int, of length: Int? = nil) -> ServerStep {
        tus(200, ["Upload-Offset": "\(offset)"].merging(length.map { ["Upload-Length": "\($0)"] } ?? [:]) { $1 })
    }

    static func accepted(_ offset: Int) -> ServerStep { tus(204, ["Upload-Offset": "\(offset)"]) }
}
