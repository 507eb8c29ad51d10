import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

extension TUSServer {
    private static let maximumUnansweredQuestions = 2
    /// How long a server that had no answer is not asked again.
    private static let guessLifetime = Duration.seconds(10 * 60)
    /// A question that was given up after less time was no burden: its answer might have come.
    static let patience = Duration.seconds(10)

    /// What the server can do (tus 1.0.0, "OPTIONS"): asked once a day, for all attempts together.
    ///
    /// A server that has no answer is taken to have the core protocol and *creation*.
    ///
    /// - Parameter verification: With `checksum`, what the server can do has to be known.
    /// - Throws: Also a ``TransferError`` of the class ``FailureClass/transient`` where that is so and it could not be asked.
    func features(for verification: Verification) async throws -> ServerFeatures {
        let features = try await memory.features(of: address) {
            // A server that never has an answer must not keep its uploads waiting for one.
            guard memory.habits(of: address).unansweredQuestions < Self.maximumUnansweredQuestions else {
                memory.learn(of: address) { $0.unansweredQuestions -= 1 }
                return (.guess, lifetime: Self.guessLifetime)
            }
            let answer = try await askForFeatures()
            memory.learn(of: address) { $0.unansweredQuestions = 0 }
            switch answer.status {
            case 400 where answer.refusesCertificate: throw try await refused(answer)
            case 407, 412, 429, 503: throw try await refused(answer)
            case 200..<300: return (ServerFeatures(answer.response.headers, in: dialect) ?? .minimal, lifetime: EndpointMemory.lifetime)
            // These speak of who asked, or of this moment.
            case 401, 403, 408, 423, 425: return (.guess, lifetime: nil)
            case 500... where answer.status != 501: return (.guess, lifetime: nil)
            default: return (.minimal, lifetime: EndpointMemory.lifetime)
            }
        }
        if features.isGuess, verification == .checksum {
            throw TransferError(
                .transient, .serverError, "The server \(origin) does not say at present whether it can compare checksums, as is wanted.")
        }
        try checkVersion(features)
        return features
    }

    private func askForFeatures() async throws -> TUSAnswer {
        let start = memory.now()
        do {
            return try await ask(.options) { try await send(.options, to: address) }
        } catch let error as TransferError where error.code == .connectionLost {
            memory.learn(of: address) { $0.unansweredQuestions += 1 }
            throw error
        } catch let error as CancellationError {
            // A queue gives up what stalls by cancelling it, as people do whatever they changed their mind about.
            if memory.now() - start >= Self.patience { memory.learn(of: address) { $0.unansweredQuestions += 1 } }
            throw error
        }
    }

    func checkVersion(_ features: ServerFeatures) throws(TransferError) {
        guard !features.versions.isEmpty, !features.versions.contains(dialect.version) else { return }
        throw TransferError(
            .permanent, .unsupportedVersion,
            "The server \(origin) speaks tus \(features.versions.joined(separator: ", ").prefix(100)); this transport speaks \(dialect.version)."
        )
    }

    /// Refuses what is larger than the server takes (tus 1.0.0, "Tus-Max-Size").
    ///
    /// - Parameter maximum: nil for a server that does not say.
    func checkSize(_ size: Int64, atMost maximum: Int64?) throws(TransferError) {
        guard let maximum, size > maximum else { return }
        throw TransferError(.unsupported, .tooLarge, "The server \(origin) takes files of up to \(maximum) bytes; this one has \(size).")
    }

    /// Asks for an upload to be made (tus 1.0.0, "Creation").
    ///
    /// - Parameters:
    ///   - metadata: What is said about the file.
    ///   - headers: What kind of upload it is to be.
    ///   - file: Sent along, whole (extension *creation-with-upload*).
    /// - Returns: Whatever the server answers.
    func requestCreation(
        _ metadata: UploadMetadata, headers: HTTPHeaders, with file: FileReader? = nil, reporter: AttemptReporter? = nil
    ) async throws -> TUSAnswer {
        var headers = headers
        headers[dialect.metadataHeader] = metadata.headerValue
        guard let file, let reporter else {
            return try await ask(.create) { try await send(.create, to: address, headers: headers, body: .bytes([])) }
        }
        headers["Content-Type"] = dialect.creationContentType
        let size = file.source.size
        return try await ask(.create) {
            try await send(
                .create, to: address, headers: headers, body: .file(file, offset: 0, length: size),
                expectsContinue: size > Self.unaskedContent, pacing: { reporter.allowance(upTo: $0) },
                progress: { reporter.report(sent: $0, confirmed: 0) })
        }
    }

    /// A body above this is announced before it is sent: a refusal then costs one round trip, and not the body.
    private static let unaskedContent: Int64 = 256 * 1024

    /// Takes the upload's address from an answer to a creation.
    ///
    /// - Throws: The error for an answer that is no success, and for an address at an origin that the endpoint does not trust.
    func created(_ answer: TUSAnswer) async throws -> String {
        let location = answer.location
        if let location, origin.scheme == "https", Origin(location)?.scheme != "https" {
            throw TransferError(
                .permanent, .badAnswer,
                "The server \(origin) wants the content sent without TLS, to an http address. Behind a proxy, let it know of https "
                    + "(X-Forwarded-Proto). The upload that it made is left there until it expires.")
        }
        guard answer.isSuccess, let location else { throw try await refused(answer) }
        if let target = Origin(location), target != origin, !settings.requests.origins.contains(target) {
            throw TransferError(
                .permanent, .badAnswer,
                "The server \(origin) wants the content sent to \(target), which this endpoint does not trust. If that is right, add it to the "
                    + "endpoint's setting origins (--setting 'origins=\(target)'). The upload that was made is left there until it expires."
            )
        }
        return location.absoluteString
    }

    /// How much of an upload the server has, and the answer that says so.
    typealias Standing = (offset: Int64, answer: TUSAnswer)

    /// Asks how much of an upload the server has (tus 1.0.0, "HEAD").
    ///
    /// - Throws: Also a ``TransferError`` of the class ``FailureClass/resumeLost`` if the upload is not of this length.
    /// - Parameter length: How many bytes the upload has to have; nil while nobody knows.
    func offset(of url: String, length: Int64?) async throws -> Standing {
        let answer = try await ask(.head, at: url) {
            do {
                return try await send(.head, to: url)
            } catch let error as CurlEngineError where error.isRefused(by: client.origin(of: url)) {
                memory.noteOutage(of: url)
                throw error
            }
        }
        guard answer.isSuccess, let offset = answer.offset else { throw try await refused(answer) }
        if let theirs = answer.length, let length, theirs != length {
            throw TransferError(
                .resumeLost, .uploadGone, "The server \(origin) has an upload of \(theirs) bytes where one of \(length) was begun.")
        }
        if let length, offset > length {
            throw TransferError(
                .resumeLost, .uploadGone, "The server \(origin) claims to have \(offset) bytes of an upload of \(length).")
        }
        return (offset, answer)
    }

    /// How large the file of a complete upload is, by an answer to `GET`.
    ///
    /// - Returns: nil if the server does not give it back, or does not answer. The size is reliable if the tus server itself answered, and not a page
    ///   of something before it.
    func storedSize(of url: String) async throws -> (bytes: Int64, isReliable: Bool)? {
        let answer: TUSAnswer
        do {
            answer = try await send(.get, to: url, headers: ["Range": "bytes=0-0", "Accept-Encoding": "identity"])
        } catch is CurlEngineError {
            return nil
        }
        return RemoteFile.length(status: answer.status, headers: answer.response.headers).map { ($0, answer.isFromTUSServer) }
    }

    /// Removes an upload that has nothing by the word of a server that was gone after it took content. Some have bytes that they do not count
    /// then, and append to them what comes next (tuspyserver, for one).
    ///
    /// - Returns: Whether that was so; and if not, where the server stands, if it was asked.
    /// - Parameter length: As for ``offset(of:length:)``.
    func removeIfDoubtful(_ upload: RemoteUpload, length: Int64?) async throws -> (isRemoved: Bool, standing: Standing?) {
        guard let url = upload.url else { return (false, nil) }
        let seen = memory.requestBeforeOutage(of: url)
        guard let request = seen ?? upload.doubt, request.offset == 0 else { return (false, nil) }
        let standing = try await offset(of: url, length: length)
        guard standing.offset == 0 else { return (false, standing) }
        // Where nobody saw the server gone, something on the way may have kept the request back, too.
        if seen == nil, upload.doubtful == nil {
            ChunkPlan(wanted: nil, multiple: settings.chunkMultiple, memory: memory, address: address).learn(from: request, at: 0)
        }
        do {
            try await delete(url)
        } catch let error as TransferError where !error.wantsPeace {
            // It expires, as any upload that nobody goes on with.
        }
        return (true, nil)
    }

    /// Removes uploads that are of no use any more, as far as the server does that; the others expire.
    ///
    /// - Returns: What the server said when it asked to be left alone, if it did; then no other was removed.
    func removeIfAllowed(_ urls: [String]) async -> TransferError? {
        for url in urls {
            do { try await delete(url) } catch let error as TransferError where error.wantsPeace { return error } catch { continue }
        }
        return nil
    }

    /// Asks how much a server has of a file that it puts together of parts.
    ///
    /// - Returns: nil while it does not say, as parts are missing.
    func finalOffset(of url: String, length: Int64) async throws -> Int64? {
        let answer = try await ask(.head, at: url) { try await send(.head, to: url) }
        guard answer.isSuccess else { throw try await refused(answer) }
        if let theirs = answer.length, theirs != length {
            throw TransferError(
                .resumeLost, .uploadGone, "The server \(origin) made a file of \(theirs) bytes out of parts that have \(length).")
        }
        return answer.offset
    }

    /// Removes an upload (tus 1.0.0, "Termination").
    ///
    /// - Throws: A ``TransferError``: of the class ``FailureClass/unsupported`` where it is left until it expires; its code is
    ///   ``TransferError/Code/unsupported``, too, if the server removes none by its own word.
    func delete(_ url: String) async throws {
        let answer = try await ask(.delete, at: url) { try await send(.delete, to: url) }
        if answer.isSuccess || answer.status == 404 || answer.status == 410 { return }
        throw try await refused(answer)
    }

    /// The error for an answer. Asks for the versions that the server speaks if that is the trouble and it did not say, and for the page that an
    /// answer to `HEAD` does not have.
    func refused(_ answer: TUSAnswer) async throws -> TransferError {
        if answer.request == .head, answer.status == 400, !answer.isFromTUSServer {
            let options = try? await send(.options, to: address)
            try Task.checkCancellation()
            if let options, options.refusesCertificate { return options.failure() }
        }
        guard answer.status == 412, answer.request != .options, answer.response.headers[dialect.versionsHeader] == nil else {
            return answer.failure()
        }
        let options = try? await send(.options, to: address)
        try Task.checkCancellation()
        return answer.failure(versions: options?.response.headers[dialect.versionsHeader])
    }

    /// Puts it in the queue's terms when there is no answer.
    ///
    /// - Parameter url: What is asked for, which may be at another host; nil for the endpoint.
    func ask(_ request: TUSRequest, at url: String? = nil, _ body: () async throws -> TUSAnswer) async throws -> TUSAnswer {
        do {
            return try await body()
        } catch let error as CurlEngineError {
            throw client.transferError(error, at: url, isEndpoint: request.isCreation)
        }
    }
}
