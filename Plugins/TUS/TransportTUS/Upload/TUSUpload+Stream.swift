import CurlEngine
import HTTPSupport
import TransferCore
import TransportSupport

extension TUSUpload {
    /// Sends a growing source. Each request sends some of the available bytes (``StreamWindow``).
    ///
    /// The transport declares the length when it is known: at the creation, or with the last request (extension *creation-defer-length*). If the
    /// server requires the length earlier, the transport waits until the source is complete.
    func transfer(_ growth: SourceGrowth) async throws -> TransferReceipt {
        let features = if let knownFeatures { knownFeatures } else { try await server.features(for: options.verification) }
        let check = ContentCheck(
            options.verification, features, canSendTrailers: server.options.requests.httpVersion == .http1)
        guard check != .readingBack else {
            throw TransferError(
                .unsupported, .unsupported,
                "The server \(server.origin) does not compare checksums, and a stream can't be verified by reading it back. "
                    + "Use --verify size.")
        }
        if let length = growth.length { try server.checkSize(length, atMost: features.maximumSize) }
        var receipt = TransferReceipt(bytes: 0)
        var known = await record.checkpoint
        var remoteOffset: TUSServer.RemoteOffset?
        if options.uploadURL != nil {
            remoteOffset = try await checkThatGivenUploadIsEmpty(known, length: Self.length(growth))
        } else if known.confirmed == 0 {
            // After the first confirmed byte, a stream can't restart, because the queue frees confirmed bytes.
            remoteOffset = try await restartIfUncounted(&known, length: Self.length(growth))
        }
        var patchLoop: PatchLoop
        if let url = known.whole.url {
            patchLoop = self.patchLoop(.whole, 0..<Int64.max, to: url, check)
            patchLoop.maximumSize = features.maximumSize
            try await patchLoop.resume(from: remoteOffset)
        } else {
            let (url, isLengthDeclared) = try await create(growth, features)
            patchLoop = self.patchLoop(.whole, 0..<Int64.max, to: url, check)
            patchLoop.maximumSize = features.maximumSize
            patchLoop.isLengthDeclared = isLengthDeclared
            try await patchLoop.send(from: 0)
        }
        receipt.bytes = patchLoop.length ?? 0
        receipt.checksum = patchLoop.contentHash?.checksum.text
        return receipt
    }

    /// Creates the upload.
    ///
    /// - Returns: The upload's URL, and whether the server knows the upload's length.
    private func create(_ growth: SourceGrowth, _ features: TUSFeatures) async throws -> (url: String, isLengthDeclared: Bool) {
        try await record.save()
        var length = Self.length(growth)
        if length == nil, features.offers(.creationDeferLength), let header = server.dialect.deferredLengthHeader {
            let tusResponse = try await server.requestCreation(metadata, headers: [header: "1"])
            // The server may announce the extension and still reject the request.
            if tusResponse.status != 400 { return (try await created(tusResponse), false) }
        }
        if length == nil {
            try await growth.waitUntilComplete()
            if case .failed(let error) = growth.extent { throw error }
            length = Self.length(growth)
        }
        guard let length else { throw CancellationError() }
        try server.checkSize(length, atMost: features.maximumSize)
        let tusResponse = try await server.requestCreation(metadata, headers: [server.dialect.lengthHeader: "\(length)"])
        return (try await created(tusResponse), true)
    }

    private func created(_ tusResponse: TUSResponse) async throws -> String {
        let url = try await server.created(tusResponse)
        try await record.confirm(0, of: .whole, expires: tusResponse.expires, url: url)
        return url
    }

    /// Returns the length of a growing source in bytes; nil while it is unknown.
    static func length(_ growth: SourceGrowth) -> Int64? {
        if case .complete(let size) = growth.extent { size } else { growth.length }
    }
}
