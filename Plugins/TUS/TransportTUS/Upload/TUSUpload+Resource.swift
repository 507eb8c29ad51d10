import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

extension TUSUpload {
    /// Sends the file, or the rest of it. The bytes after a creation are sent as in tus, with `PATCH`.
    func transferToResource() async throws -> TransferReceipt {
        let known = await record.checkpoint.whole
        if known.url == nil, known.mayBeComplete == true {
            // A killed process may have sent the whole content, and the server announced no upload whose state could be requested.
            try await record.save { $0 = TUSCheckpoint() }
            throw server.outcomeUnknown()
        }
        let growth = file.source.growth
        var receipt = TransferReceipt(bytes: size)
        let verifies = options.verification == .checksum
        // The checksum of a stream is known only at its end.
        let digest =
            verifies && growth == nil
            ? try await threads.checksum(
                .sha256, of: 0..<size, reading: { [file] in try file.bytes($0) }, progress: reporter.reportActivity)
            : nil
        let range = growth == nil ? 0..<size : 0..<Int64.max
        var tusResponse: TUSResponse?
        var patchLoop: PatchLoop?
        if let url = known.url {
            if known.isGiven == true { _ = try await checkThatGivenUploadIsEmpty(await record.checkpoint, length: length) }
            if known.dialect == nil { try await record.save { [server] in $0.whole.dialect = server.dialect.storedName } }
            patchLoop = loop(range, to: url, digest)
            try await patchLoop?.resume()
        } else {
            switch try await create(digest) {
            case .complete(let final): tusResponse = final
            case .open(let url, let offset, let limits):
                patchLoop = loop(range, to: url, digest)
                patchLoop?.chunks.limits = limits
                if let offset { try await patchLoop?.send(from: offset) } else { try await patchLoop?.resume() }
            }
        }
        if let patchLoop {
            receipt.bytes = patchLoop.length ?? size
            tusResponse = patchLoop.resource.finalResponse
            if patchLoop.resource.wasCompleteBefore {
                receipt.warnings.append(
                    "The server \(server.origin) has the whole file, but its response to the last request was lost, so it is unknown how the server "
                        + "processed the file.")
            }
        }
        if let digest = digest ?? patchLoop?.contentHash?.checksum {
            receipt.checksum = try await compare(digest, tusResponse)
        } else if verifies {
            receipt.warnings.append(
                "This upload is unverified: the stream was interrupted, so the checksum of all its content is unknown. Each request had the checksum "
                    + "of its content.")
        }
        receipt.remoteURL = tusResponse?.location?.absoluteString
        return receipt
    }

    private var length: Int64? { file.source.growth.map(Self.length) ?? size }

    private func loop(_ range: Range<Int64>, to url: String, _ digest: Checksum?) -> PatchLoop {
        let check: ContentCheck = options.verification == .checksum ? .eachRequest(.sha256) : .none
        var patchLoop = patchLoop(.whole, range, to: url, check)
        patchLoop.resource.digest = digest
        return patchLoop
    }

    private enum Creation {
        case complete(TUSResponse)
        case open(url: String, offset: Int64?, UploadLimits)
    }

    /// Creates the upload in the newest version that the server accepts.
    private func create(_ digest: Checksum?) async throws -> Creation {
        var server = server
        var limits = server.profiles.dialect(of: server.address)?.limits ?? UploadLimits()
        var withContent = creationContainsContent
        var untried = Dialect.ietfVersions
        while true {
            untried.removeAll { $0.version == server.dialect.version }
            try server.checkLimits(limits, of: length)
            withContent = withContent && size <= limits.maximumAppendSize ?? .max
            let creation = ResourceCreation(
                server: server, file: file, record: record, reporter: reporter, url: server.target(of: remotePath),
                headers: try headers(digest, withContent: withContent), size: length)
            let result: ResourceCreation.Result
            do {
                result = try await creation.send(withContent: withContent)
            } catch let error as TransferError
                where error.code == .tooLarge || error.code == .rejected && error.failureClass == .unsupported
            {
                // The limits exclude the file, so the upload is not needed.
                _ = await server.removeIfAllowed(record.checkpoint.ownURLs)
                throw error
            } catch let error as TransferError where error.code == .invalidResponse && error.failureClass == .permanent {
                // The response is invalid, so an announced upload is not needed. If the user retries the file, the upload restarts.
                _ = await server.removeIfAllowed(record.checkpoint.ownURLs)
                try await record.save { $0 = TUSCheckpoint() }
                throw error
            }
            limits.update(with: creation.limits)
            switch result {
            case .complete(let tusResponse): return .complete(tusResponse)
            case .open(let url, let offset):
                return .open(url: url, offset: offset, limits)
            case .rejected(let tusResponse):
                limits.update(with: tusResponse.limits)
                if [400, 412].contains(tusResponse.status), let other = otherVersion(after: tusResponse, of: server, among: untried) {
                    server.dialect = other
                } else if tusResponse.status == 413, withContent {
                    // The server may have announced an upload for this request. The next request creates another one.
                    if await !record.checkpoint.ownURLs.isEmpty {
                        _ = await server.removeIfAllowed(record.checkpoint.ownURLs)
                        try await record.save { $0 = TUSCheckpoint() }
                    }
                    withContent = false
                    if limits.maximumAppendSize == nil { _ = chunks(.none).shrink(below: size) }
                } else {
                    throw failure(tusResponse, of: server)
                }
            }
        }
    }

    /// Returns the version for the next request after a rejection: the version that the server names, or else an untried version. Returns nil if no
    /// version remains. If the server has already accepted the current version, 400 rejects the file, and 412 shows that the server was updated.
    private func otherVersion(after tusResponse: TUSResponse, of server: TUSServer, among untried: [Dialect]) -> Dialect? {
        if let named = tusResponse.namedVersion(among: untried) { return named }
        if server.isDialectConfirmed { return tusResponse.status == 412 ? untried.first : nil }
        return server.dialect.lowerVersions.first { lower in untried.contains { $0.version == lower.version } }
    }

    private func failure(_ tusResponse: TUSResponse, of server: TUSServer) -> TransferError {
        let wasLast = [400, 412].contains(tusResponse.status) && !server.isDialectConfirmed
        return wasLast ? server.rejectedVersions(tusResponse) : server.changeToTUS(tusResponse) ?? tusResponse.failure()
    }

    /// Whether the creation contains the whole content. After an interrupted attempt without an announced upload, the creation contains no
    /// content, because interim responses may not arrive, and some proxies end requests with interim responses.
    private var creationContainsContent: Bool {
        guard !isRepeated, options.creation == .automatic, file.source.growth == nil else { return false }
        // If the server speaks another version, its interim response is ignored, and a lost connection would leave the outcome unknown.
        if let known = server.profiles.dialect(of: server.address), !known.isConfirmed { return false }
        let quirks = server.profiles.quirks(of: server.address)
        if server.profiles.dialect(of: server.address)?.isBehindNginx == true, !quirks.sendsNoInterimResponses { return false }
        let limit = min(options.chunkSize ?? server.options.chunkSize ?? .max, quirks.chunkLimit ?? .max)
        return server.options.requests.httpVersion == .http1 && size <= limit
    }

    /// Returns the headers about the file, with its checksum if it is known.
    private func headers(_ digest: Checksum?, withContent: Bool) throws -> HTTPHeaders {
        var headers = try metadata.representationHeaders.get()
        guard let digest else { return headers }
        headers["Repr-Digest"] = digest.digestField
        if withContent {
            headers["Content-Digest"] = digest.digestField
            headers["Want-Repr-Digest"] = Checksum.wantedDigest
        }
        return headers
    }

    /// Compares the checksum of the file with the one that the server reports.
    ///
    /// - Returns: The checksum.
    /// - Throws: A ``TransferError`` if the checksums differ, or if the server reports none.
    private func compare(_ digest: Checksum, _ tusResponse: TUSResponse?) async throws -> String {
        var reported = tusResponse?.reportedDigest
        if reported == nil, let url = await record[.whole].url { reported = try await server.reportedDigest(of: url) }
        guard let reported, reported.algorithm == digest.algorithm else {
            throw TransferError(
                .unsupported, .unsupported,
                "The server \(server.origin) has the file, but reports no SHA-256 of it (Repr-Digest), so the file is unverified.")
        }
        guard reported == digest else {
            try await file.verifyUnchanged()
            throw TransferError(.resumeLost, .checksumMismatch, "The file at \(server.origin) differs from its source.")
        }
        return digest.text
    }
}
