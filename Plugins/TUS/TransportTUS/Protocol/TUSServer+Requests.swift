import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

extension TUSServer {
    /// The number of consecutive `OPTIONS` requests without a response after which the transport assumes the server's features.
    private static let maximumUnansweredOptionsRequests = 2
    /// How long the transport uses assumed features for a server that does not respond to `OPTIONS`.
    private static let guessLifetime = Duration.seconds(10 * 60)
    /// The time after which a request without a response counts as unanswered.
    static let responseTimeLimit = Duration.seconds(10)

    /// Returns the server's features (tus 1.0.0, "OPTIONS"). All attempts use the cached result for a day, or a cached guess for ten
    /// minutes.
    ///
    /// If a server does not report its features, rejects the request for them, or did not respond to the last two requests, this method assumes
    /// the core protocol and *creation*. The endpoint's ``TUSOptions/extensions`` replace the extensions that the server announces.
    ///
    /// - Parameter verification: The session's verification. With `checksum`, a guess (``TUSFeatures/isGuess``) is not sufficient.
    /// - Throws: A ``TransferError``, for example of the class ``FailureClass/transient`` if a guess is not sufficient; or
    ///   `CancellationError`.
    func features(for verification: Verification) async throws -> TUSFeatures {
        var features = try await profiles.features(of: address) {
            // Uploads must not wait for a server that never responds to OPTIONS.
            guard profiles.quirks(of: address).unansweredOptionsRequests < Self.maximumUnansweredOptionsRequests else {
                profiles.learn(of: address) { $0.unansweredOptionsRequests -= 1 }
                return (.guess, lifetime: Self.guessLifetime)
            }
            let tusResponse = try await requestFeatures()
            profiles.learn(of: address) { $0.unansweredOptionsRequests = 0 }
            switch tusResponse.status {
            case 400 where tusResponse.refusesCertificate: throw try await refused(tusResponse)
            case 407, 412, 429, 503: throw try await refused(tusResponse)
            case 200..<300:
                let headers = tusResponse.response.headers
                return (TUSFeatures(headers, in: dialect) ?? .assumed(after: headers), lifetime: ServerProfileCache.lifetime)
            // These statuses depend on the client, or are temporary.
            case 401, 403, 408, 423, 425: return (.guess, lifetime: nil)
            case 500... where tusResponse.status != 501: return (.guess, lifetime: nil)
            default: return (.assumed(after: tusResponse.response.headers), lifetime: ServerProfileCache.lifetime)
            }
        }
        if let extensions = options.extensions {
            features.replaceExtensions(extensions)
        } else if features.isGuess, verification == .checksum {
            throw TransferError(
                .transient, .serverError,
                "The server \(origin) currently does not report whether it can compare checksums, which the session requires.")
        }
        try checkVersion(features)
        return features
    }

    /// Sends an `OPTIONS` request. If no response arrives, increments the endpoint's number of unanswered `OPTIONS` requests.
    private func requestFeatures() async throws -> TUSResponse {
        let start = profiles.now()
        do {
            return try await convertingErrors(.options) { try await send(.options, to: address) }
        } catch let error as TransferError where error.code == .connectionLost || error.code == .serverUnavailable {
            // Both codes mean a broken connection here: the caller handles the statuses 502 to 504.
            profiles.learn(of: address) { $0.unansweredOptionsRequests += 1 }
            throw error
        } catch let error as CancellationError {
            // The cancellation may come from the user rather than from the queue's stall timeout. Therefore, only a long wait counts as unanswered.
            if profiles.now() - start >= Self.responseTimeLimit { profiles.learn(of: address) { $0.unansweredOptionsRequests += 1 } }
            throw error
        }
    }

    /// Rejects a server whose list of versions lacks the version of this transport. Accepts a server without a list.
    func checkVersion(_ features: TUSFeatures) throws(TransferError) {
        guard !features.versions.isEmpty, !features.versions.contains(dialect.version) else { return }
        throw TransferError(
            .permanent, .unsupportedVersion,
            "The server \(origin) supports tus \(features.versions.joined(separator: ", ").prefix(100)); "
                + "this transport supports \(dialect.version)."
        )
    }

    /// Rejects a file that is larger than the server allows (tus 1.0.0, "Tus-Max-Size").
    ///
    /// - Parameter maximum: The maximum size in bytes; nil if the server does not report it.
    func checkSize(_ size: Int64, atMost maximum: Int64?) throws(TransferError) {
        guard let maximum, size > maximum else { return }
        throw TransferError(.unsupported, .tooLarge, "The server \(origin) accepts files of up to \(maximum) bytes; this file has \(size).")
    }

    /// Requests the creation of an upload (tus 1.0.0, "Creation").
    ///
    /// - Parameters:
    ///   - metadata: The metadata of the file.
    ///   - headers: The headers for the kind of upload.
    ///   - file: The file to send with the request (extension *creation-with-upload*); nil for a request without content.
    ///   - reporter: Reports the progress of the file; required if there is a file.
    /// - Returns: The response, regardless of its status.
    func requestCreation(
        _ metadata: UploadMetadata, headers: HTTPHeaders, with file: FileReader? = nil, reporter: AttemptReporter? = nil
    ) async throws -> TUSResponse {
        var headers = headers
        headers[dialect.metadataHeader] = metadata.headerValue
        guard let file, let reporter else {
            return try await convertingErrors(.create) { try await send(.create, to: address, headers: headers, body: .bytes([])) }
        }
        headers["Content-Type"] = dialect.creationContentType
        let size = file.source.size
        return try await convertingErrors(.create) {
            try await send(
                .create, to: address, headers: headers, body: .file(file, offset: 0, length: size),
                expectsContinue: size > Self.maximumSizeWithoutExpect, pacing: { reporter.allowance(upTo: $0) },
                progress: { reporter.report(sent: $0, confirmed: 0) })
        }
    }

    /// The maximum size, in bytes, of a creation's body that is sent without `Expect: 100-continue`. With `Expect`, the rejection of a larger
    /// body costs one round trip instead of the whole body.
    static let maximumSizeWithoutExpect: Int64 = 256 * 1024

    /// Returns the URL of a created upload.
    ///
    /// - Throws: The error for a failed creation, for a URL at an untrusted origin, or for an `http` URL from an `https` server.
    func created(_ tusResponse: TUSResponse) async throws -> String {
        let location = tusResponse.location
        if let location { try checkTLS(of: location) }
        guard tusResponse.isSuccess, let location else { throw try await refused(tusResponse) }
        try checkTrust(in: location)
        return location.absoluteString
    }

    /// Checks the URL of an upload.
    ///
    /// - Throws: The error for a URL at an untrusted origin, or for an `http` URL from an `https` server.
    func checkUploadURL(_ location: URL) throws(TransferError) {
        try checkTLS(of: location)
        try checkTrust(in: location)
    }

    private func checkTLS(of location: URL) throws(TransferError) {
        if origin.scheme == "https", Origin(location)?.scheme != "https" {
            throw TransferError(
                .permanent, .invalidResponse,
                "The server \(origin) returned an http: URL for the upload, so the content would be sent without TLS. If the server is "
                    + "behind a proxy, configure the proxy to send \"X-Forwarded-Proto: https\". The new upload remains on the server until it "
                    + "expires."
            )
        }
    }

    private func checkTrust(in location: URL) throws(TransferError) {
        if let target = Origin(location), target != origin, target != client.origin, !options.requests.trustedOrigins.contains(target) {
            throw TransferError(
                .permanent, .invalidResponse,
                "The server \(origin) returned a URL at \(target) for the upload, but this endpoint does not trust that origin. If the URL is correct, add the "
                    + "origin to the endpoint's setting origins (--setting 'origins=\(target)'). The new upload remains there until it expires."
            )
        }
    }

    /// The server's offset of an upload, and the response that reported it.
    typealias RemoteOffset = (offset: Int64, tusResponse: TUSResponse)

    /// Requests the offset of an upload (tus 1.0.0, "HEAD").
    ///
    /// - Parameter length: The expected length of the upload; nil while it is unknown.
    /// - Throws: A ``TransferError``. Its class is ``FailureClass/resumeLost`` if the upload is gone or does not match the length.
    func offset(of url: String, length: Int64?) async throws -> RemoteOffset {
        let tusResponse = try await sendInAcceptedVersion(.head, at: url) { server in
            do {
                return try await server.send(.head, to: url)
            } catch let error as CurlEngineError where error.isRefused(by: client.origin(of: url)) {
                profiles.recordOutage(of: url)
                throw error
            }
        }
        guard tusResponse.isSuccess, let offset = tusResponse.offset else { throw try await refused(tusResponse) }
        if let reportedLength = tusResponse.length, let length, reportedLength != length {
            throw TransferError(
                .resumeLost, .uploadGone, "The server \(origin) has an upload of \(reportedLength) bytes instead of \(length).")
        }
        if let length, offset > length {
            throw TransferError(
                .resumeLost, .uploadGone, "The server \(origin) claims to have \(offset) bytes of an upload of \(length) bytes.")
        }
        return (offset, tusResponse)
    }

    /// Requests the size of a complete upload's file on the server, with a `GET` for its first byte.
    ///
    /// - Returns: The size; nil if the response does not report it, or no response arrives within ``responseTimeLimit``. The size is reliable if the
    ///   response comes from the tus server, not from a proxy, and contains the requested range. A response without a range may be another
    ///   page, such as a description of the upload.
    func storedSize(of url: String) async throws -> (bytes: Int64, isReliable: Bool)? {
        // The upload is complete, so it must not wait for a server that never responds to GET.
        let tusResponse = try await withThrowingTaskGroup(of: TUSResponse?.self) { group in
            group.addTask {
                do {
                    return try await send(.get, to: url, headers: ["Range": "bytes=0-0", "Accept-Encoding": "identity"])
                } catch is CurlEngineError {
                    return nil
                }
            }
            group.addTask {
                try await Task.sleep(for: Self.responseTimeLimit)
                return nil
            }
            defer { group.cancelAll() }
            return try await group.next() ?? nil
        }
        guard let tusResponse else { return nil }
        let headers = tusResponse.response.headers
        guard !headers.hasContentCoding else { return nil }
        let isReliable = tusResponse.isFromTUSServer && tusResponse.status != 200
        return RemoteFile.length(status: tusResponse.status, headers: headers).map { ($0, isReliable) }
    }

    /// Abandons an upload that may have uncounted bytes at its start: bytes that the server stored although its offset is 0. This can happen
    /// if the server failed while it received the first request. Some servers, such as tuspyserver, append later content to these bytes.
    ///
    /// An abandoned upload is removed, if the server allows that.
    ///
    /// - Parameter length: The expected length of the upload; nil while it is unknown.
    /// - Returns: Whether the upload was abandoned. If it was not, and this method requested the server's offset, also the offset.
    func abandonIfUncounted(_ upload: RemoteUpload, length: Int64?) async throws -> (isAbandoned: Bool, remoteOffset: RemoteOffset?) {
        guard let url = upload.url else { return (false, nil) }
        let observed = profiles.requestBeforeOutage(of: url)
        guard let request = observed ?? upload.possiblyUncounted, request.offset == 0 else { return (false, nil) }
        let remoteOffset = try await offset(of: url, length: length)
        guard remoteOffset.offset == 0 else { return (false, remoteOffset) }
        // If this process did not observe an outage, a proxy may have buffered the request, so later requests must be smaller.
        if observed == nil, upload.uncountedRequest == nil {
            let plan = ChunkPlan(configuredSize: nil, multiple: options.chunkMultiple, profiles: profiles, address: address)
            plan.learn(from: request, at: 0)
        }
        do {
            try await delete(url)
        } catch let error as TransferError where !error.asksToBackOff {
            // The upload remains until it expires, like any abandoned upload.
        }
        return (true, nil)
    }

    /// Removes uploads that are no longer needed, if the server supports that. Uploads that are not removed expire.
    ///
    /// - Returns: The error, if the server asked to back off. The remaining uploads are then not removed.
    func removeIfAllowed(_ urls: [String]) async -> TransferError? {
        for url in urls {
            do { try await delete(url) } catch let error as TransferError where error.asksToBackOff { return error } catch { continue }
        }
        return nil
    }

    /// Requests the offset of a final upload, which the server concatenates from segments.
    ///
    /// - Returns: The offset; nil while the server does not report the offset because segments are missing.
    /// - Throws: A ``TransferError``. Its class is ``FailureClass/resumeLost`` if the upload has another length.
    func finalOffset(of url: String, length: Int64) async throws -> Int64? {
        let tusResponse = try await convertingErrors(.head, at: url) { try await send(.head, to: url) }
        guard tusResponse.isSuccess else { throw try await refused(tusResponse) }
        if let reportedLength = tusResponse.length, reportedLength != length {
            throw TransferError(
                .resumeLost, .uploadGone,
                "The server \(origin) made a file of \(reportedLength) bytes from segments of \(length) bytes in total.")
        }
        return tusResponse.offset
    }

    /// Removes an upload (tus 1.0.0, "Termination").
    ///
    /// - Throws: A ``TransferError``. The class is ``FailureClass/unsupported`` if the upload remains until it expires. The code is then
    ///   ``TransferError/Code/unsupported`` if the server removes no uploads at all, or ``TUSOptions/extensions`` excludes termination.
    func delete(_ url: String) async throws {
        guard dialect.ietf != nil || options.extensions?.contains(.termination) ?? true else {
            throw TransferError(
                .unsupported, .unsupported, "The endpoint's setting extensions excludes termination, so the upload remains.")
        }
        let tusResponse = try await sendInAcceptedVersion(.delete, at: url) { try await $0.send(.delete, to: url) }
        if tusResponse.isSuccess || tusResponse.status == 404 || tusResponse.status == 410 { return }
        throw try await refused(tusResponse)
    }

    /// Returns the error for a response. If the response lacks information, sends an `OPTIONS` request first. After a 412, the response to
    /// `OPTIONS` contains the server's versions. After a `HEAD` with the status 400, whose response has no body, the response to `OPTIONS`
    /// shows whether a proxy rejects the client certificate. After a response that may come from a server without tus, the response to
    /// `OPTIONS` shows the server's protocol.
    func refused(_ tusResponse: TUSResponse) async throws -> TransferError {
        if let change = changeToTUS(tusResponse) { return change }
        let mayRefuseCertificate = tusResponse.request == .head && tusResponse.status == 400 && !tusResponse.isFromTUSServer
        let lacksVersions =
            tusResponse.status == 412 && tusResponse.request != .options && dialect.versionsHeader != nil
            && tusResponse.response.headers[dialect.versionsHeader] == nil
        guard mayRefuseCertificate || lacksVersions || tusResponse.mayComeFromServerWithoutTUS else { return tusResponse.failure() }
        let options = try? await send(.options, to: address)
        try Task.checkCancellation()
        if let options, mayRefuseCertificate, options.refusesCertificate { return options.failure() }
        if let options, let change = try await changeFromTUS(tusResponse, options) { return change }
        return tusResponse.failure(versions: options?.response.headers[dialect.versionsHeader])
    }

    /// Calls a closure that sends a request and, if there is no response, converts the error.
    ///
    /// - Parameters:
    ///   - url: The URL of the request; nil for the endpoint's address.
    ///   - send: Sends the request.
    func convertingErrors(_ request: TUSRequest, at url: String? = nil, _ send: () async throws -> TUSResponse) async throws -> TUSResponse
    {
        do {
            return try await send()
        } catch let error as CurlEngineError {
            throw client.transferError(error, at: url ?? address, isEndpoint: request.targetsEndpoint)
        }
    }
}
