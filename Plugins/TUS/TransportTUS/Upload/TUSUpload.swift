import CurlEngine
import HTTPSupport
import TransferCore
import TransportSupport

/// One attempt to upload one file.
struct TUSUpload {
    var server: TUSServer
    let file: FileReader
    let metadata: UploadMetadata
    let record: TUSUploadRecord
    let options: AttemptOptions
    let reporter: AttemptReporter
    let threads: WorkerThreads
    /// Whether an earlier attempt has saved a checkpoint, and may have created an upload whose URL is unknown.
    let isRepeated: Bool
    let remotePath: RemotePath
    /// The server's features, if they were requested to choose the protocol.
    var knownFeatures: TUSFeatures?
    /// Whether an upload that the app supplied may have content of an earlier version of the file.
    private let mayHaveOtherContent: Bool

    init(
        _ attempt: FileAttempt, server: TUSServer, file: FileReader, threads: WorkerThreads, reporter: AttemptReporter
    ) throws(TransferError) {
        self.server = server
        self.file = file
        self.threads = threads
        self.reporter = reporter
        options = attempt.options
        remotePath = attempt.remotePath
        isRepeated = attempt.checkpoint != nil
        mayHaveOtherContent = attempt.isRestarted && attempt.checkpoint == nil
        metadata = try UploadMetadata(attempt)
        let checkpoint = attempt.checkpoint.flatMap(TUSCheckpoint.init) ?? TUSCheckpoint(given: options.uploadURL)
        // Restores the chunk limit that an earlier process found.
        if let limit = checkpoint.chunkLimit {
            server.profiles.learn(of: server.address) { $0.limitChunks(to: max(ChunkPlan.minimumReducedSize, limit)) }
        }
        let (profiles, address) = (server.profiles, server.address)
        record = TUSUploadRecord(checkpoint, reporter: reporter) { profiles.quirks(of: address).chunkLimit }
    }

    var size: Int64 { file.source.size }

    func run() async throws -> TransferReceipt {
        var upload = self
        try await upload.chooseDialect()
        do {
            return try await upload.perform()
        } catch let error as TransferError where upload.mayHaveOtherDialect(error) {
            guard try await upload.chooseOtherDialect(tus: server.dialect) else { throw error }
            return try await upload.perform()
        }
    }

    private func perform() async throws -> TransferReceipt {
        var receipt = TransferReceipt(bytes: size)
        do {
            if server.dialect.ietf != nil {
                receipt = try await transferToResource()
            } else if let growth = file.source.growth {
                receipt = try await transfer(growth)
            } else {
                try await transfer(&receipt)
            }
            try await file.verifyUnchanged()
        } catch let error as TransferError where error.failureClass == .sourceChanged {
            // The server has part of one version of the file, or a mix of two versions. If the server asks the client to back off instead of
            // removing the upload, the error contains the delay.
            var failure = error
            failure.retryAfter = await server.removeIfAllowed(record.checkpoint.ownURLs)?.retryAfter ?? error.retryAfter
            throw failure
        }
        let unverified = await record.checkpoint.unverified
        if unverified > 0 {
            receipt.warnings.append(
                "The server \(server.origin) kept \(unverified) bytes of interrupted requests without comparing their checksum.")
        }
        let uncounted = await record.checkpoint.uncounted
        // An upload with a checksum was read back or sent from its first byte, so its size is not compared.
        if uncounted > 0, receipt.checksum == nil { try await checkSize(&receipt, uncounted: uncounted) }
        // The query may contain a signature.
        let url = if let url = receipt.remoteURL { url } else { await record[.whole].url }
        receipt.remoteURL = url.map { String($0.prefix { $0 != "?" }) }
        return receipt
    }

    /// Compares the size of the server's file with the number of sent bytes. Uncounted bytes (``RemoteUpload/uncounted``) make the server's file
    /// larger. If the size of the server's file is unknown, or differs but may come from a proxy, adds a warning to the receipt.
    ///
    /// - Throws: A ``TransferError`` of the class ``FailureClass/resumeLost`` if the tus server itself reports another size. The upload is then
    ///   removed, if the server allows that.
    private func checkSize(_ receipt: inout TransferReceipt, uncounted: Int64) async throws {
        let url = await record[.whole].url
        let stored = if let url { try await server.storedSize(of: url) } else { nil as (bytes: Int64, isReliable: Bool)? }
        if let stored, stored.bytes == receipt.bytes { return }
        guard let stored, stored.isReliable else {
            receipt.warnings.append(
                "This upload is unverified: the server may have failed after it received \(uncounted) bytes, and then reported "
                    + "none of them. Some servers keep such bytes and append later bytes to them. Compare the file on the server.")
            return
        }
        let backOffError = await server.removeIfAllowed(record.checkpoint.ownURLs)
        throw TransferError(
            .resumeLost, .checksumMismatch,
            "The server \(server.origin) has a file of \(stored.bytes) bytes instead of \(receipt.bytes).",
            retryAfter: backOffError?.retryAfter)
    }

    /// Sends a file with tus, and sets the checksum, the warnings and the remaining segments in the receipt.
    private func transfer(_ receipt: inout TransferReceipt) async throws {
        var known = await record.checkpoint
        var remoteOffset: TUSServer.RemoteOffset?
        if known.segments == nil {
            remoteOffset =
                options.uploadURL == nil
                ? try await restartIfUncounted(&known, length: size) : try await checkThatGivenUploadIsEmpty(known, length: size)
        }
        let needsFeatures = known.whole.url == nil || known.segments != nil || options.verification == .checksum
        let features =
            if let knownFeatures { knownFeatures } else if needsFeatures {
                try await server.features(for: options.verification)
            } else { TUSFeatures.minimal }
        let check = ContentCheck(
            options.verification, features, canSendTrailers: server.options.requests.httpVersion == .http1)
        let readBack =
            check == .readingBack && size > 0
            ? ReadBack(server: server, file: file, record: record, threads: threads, reporter: reporter) : nil
        readBack?.begin()
        if known.segments == nil, known.whole.url == nil {
            try server.checkSize(size, atMost: features.maximumSize)
            // Segments can't be read back before they are concatenated.
            if check != .readingBack, usesConcatenation(features) {
                known = Concatenation.plan(options.segmentsPerFile, of: size)
                try await record.begin(known)
            }
        }
        if known.segments != nil {
            let concatenation = Concatenation(
                server: server, features: features, record: record, metadata: metadata, size: size,
                patchLoop: { slot, range, url in patchLoop(slot, range, to: url, check) })
            let remaining = try await concatenation.run()
            receipt.leftovers = try remaining.leftovers
            receipt.warnings = remaining.warning(server.origin).map { [$0] } ?? []
        } else if let url = known.whole.url {
            if options.uploadURL != nil, known.confirmed == 0 { try await readBack?.probe(given: url) }
            var patchLoop = patchLoop(.whole, 0..<size, to: url, check)
            try await patchLoop.resume(from: remoteOffset)
            receipt.checksum = patchLoop.contentHash?.checksum.text
        } else {
            let (url, offset) = try await create(features, check)
            try await readBack?.probe(url, metadata: metadata)
            var patchLoop = patchLoop(.whole, 0..<size, to: url, check)
            try await patchLoop.send(from: offset)
            receipt.checksum = patchLoop.contentHash?.checksum.text
        }
        if let readBack, let url = await record[.whole].url { receipt.checksum = try await readBack.compare(url) }
    }

    /// Abandons an upload if the server may have uncounted bytes at its start. The file then restarts with a new upload.
    ///
    /// - Returns: The server's offset, if the upload resumes and the offset was requested.
    func restartIfUncounted(_ known: inout TUSCheckpoint, length: Int64?) async throws -> TUSServer.RemoteOffset? {
        let (isAbandoned, remoteOffset) = try await server.abandonIfUncounted(known.whole, length: length)
        guard isAbandoned else { return remoteOffset }
        known = TUSCheckpoint()
        try await record.save { $0 = TUSCheckpoint() }
        return nil
    }

    /// After a restart of the file, checks that the app-supplied upload (`AttemptOptions.uploadURL`) is still empty.
    ///
    /// - Returns: The offset, which is 0; nil if the upload can't have content of another version of the file.
    /// - Throws: A ``TransferError`` if the upload has content. The upload can't restart, and the content can't be compared.
    func checkThatGivenUploadIsEmpty(_ known: TUSCheckpoint, length: Int64?) async throws -> TUSServer.RemoteOffset? {
        guard mayHaveOtherContent, let url = known.whole.url else { return nil }
        let remoteOffset = try await server.offset(of: url, length: length)
        guard remoteOffset.offset == 0 else {
            throw TransferError(
                .permanent, .invalidUploadURL,
                "The file's upload at \(server.client.origin(of: url)) already has \(remoteOffset.offset) bytes, perhaps of an earlier version of the "
                    + "file. Enqueue the file again with the URL of a new upload.")
        }
        return remoteOffset
    }

    private func usesConcatenation(_ features: TUSFeatures) -> Bool {
        options.segmentsPerFile > 1 && size > 1 && size >= server.options.requests.parallelThreshold && features.offers(.concatenation)
    }

    func patchLoop(_ slot: TUSUploadRecord.Slot, _ range: Range<Int64>, to url: String, _ check: ContentCheck) -> PatchLoop {
        PatchLoop(
            server: server, file: file, record: record, slot: slot, range: range, chunks: chunks(check), check: check, threads: threads,
            reporter: reporter, url: url)
    }

    func chunks(_ check: ContentCheck) -> ChunkPlan {
        ChunkPlan(
            configuredSize: options.chunkSize ?? server.options.chunkSize ?? check.chunkSize,
            multiple: server.options.chunkMultiple, profiles: server.profiles, address: server.address)
    }

    /// Creates the upload, together with the content of a small file if the server supports that.
    ///
    /// - Returns: The upload's URL, and the server's offset.
    private func create(_ features: TUSFeatures, _ check: ContentCheck) async throws -> (url: String, offset: Int64) {
        // Saved before the request. After a crash, the checkpoint shows that an upload with this transfer's ID may exist.
        try await record.save()
        let headers: HTTPHeaders = [server.dialect.lengthHeader: "\(size)"]
        var wasTooLarge = false
        // The protocol does not define checksums in a creation.
        if check == .none, createsWithContent(features) {
            let tusResponse = try await server.requestCreation(metadata, headers: headers, with: file, reporter: reporter)
            // A proxy may reject content in a creation although the server accepts the file.
            if tusResponse.status == 415 { server.profiles.learn(of: server.address) { $0.refusesContentInCreation = true } }
            wasTooLarge = tusResponse.status == 413
            // A 400 may mean that the content was truncated on the way. A request without content shows whether the server rejects the file itself.
            if ![400, 413, 415].contains(tusResponse.status) {
                let url = try await server.created(tusResponse)
                return (url, try await accepted(tusResponse, by: url))
            }
        }
        let tusResponse = try await server.requestCreation(metadata, headers: headers, reporter: reporter)
        let url = try await server.created(tusResponse)
        // The server accepts the file, so only the request was too large.
        if wasTooLarge { _ = chunks(check).shrink(below: size) }
        try await record.confirm(0, of: .whole, expires: tusResponse.expires, url: url)
        return (url, 0)
    }

    private func createsWithContent(_ features: TUSFeatures) -> Bool {
        // An interrupted creation can't resume. A later attempt therefore creates the upload without content, to make progress even over a
        // slow and unstable connection.
        guard !isRepeated else { return false }
        let quirks = server.profiles.quirks(of: server.address)
        let limit = min(
            server.options.singleRequestSize, options.chunkSize ?? server.options.chunkSize ?? .max, quirks.chunkLimit ?? .max)
        return size > 0 && size <= limit && options.creation == .automatic && features.offers(.creationWithUpload)
            && !quirks.refusesContentInCreation
    }

    /// Returns how many bytes the server has of the content that was sent with a creation.
    private func accepted(_ tusResponse: TUSResponse, by url: String) async throws -> Int64 {
        let sent = tusResponse.response.sent
        record.reportSent(sent.accepted, of: .whole)
        var offset = tusResponse.offset ?? 0
        if offset != size {
            // The response has no offset, or the server kept only part of the content.
            try await record.confirm(0, of: .whole, expires: tusResponse.expires, url: url)
            offset = try await server.offset(of: url, length: size).offset
        }
        guard offset <= sent.read else {
            throw TransferError(
                .resumeLost, .uploadGone,
                "The server \(server.origin) claims to have \(offset) bytes, more than the \(sent.read) that were sent."
            )
        }
        if offset == size {
            await record.complete(size, of: .whole, url: url)
        } else {
            try await record.confirm(offset, of: .whole, expires: tusResponse.expires, url: url)
        }
        return offset
    }
}
