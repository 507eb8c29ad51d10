import HTTPSupport
import TransferCore

extension TUSUpload {
    /// Chooses the dialect, that is, tus or a version of the IETF protocol.
    ///
    /// A dialect in the checkpoint takes precedence, unless the endpoint allows only tus and no upload can exist. Otherwise,
    /// ``TUSOptions/dialect`` selects the dialect of a new upload, and of an upload that the app created. With `auto`, the server's response to
    /// `OPTIONS` decides for a new upload, and an upload that the app created uses tus. Any other upload uses tus.
    mutating func chooseDialect() async throws {
        let known = await record.checkpoint
        let mayExist = known.whole.url != nil || known.whole.mayBeComplete == true
        if let dialect = known.whole.dialect.flatMap({ Dialect(storedName: $0) }), mayExist || server.options.dialect != .tus {
            server.dialect = dialect
            return
        }
        let isNew = known.whole.url == nil && known.segments == nil
        guard server.dialect.ietf == nil, isNew || options.uploadURL != nil else { return }
        switch server.options.dialect {
        case .tus: return
        case .ietf: server.dialect = try await server.negotiatedDialect()?.dialect ?? Dialect.ietfVersions[0]
        case .auto where isNew:
            let features = try await server.features(for: options.verification)
            if let dialect = try await server.dialect(for: features) { server.dialect = dialect } else { knownFeatures = features }
        case .auto: return
        }
    }

    /// Returns whether the endpoint allows both protocols, and the error may show that the server speaks only the protocol that was not chosen.
    func mayHaveOtherDialect(_ error: TransferError) -> Bool {
        server.options.dialect == .auto
            && (error.failureClass == .unreachable && error.code == .notThisProtocol
                || error.code == .unsupportedVersion && server.dialect.ietf != nil)
    }

    /// Changes from tus to the IETF protocol, or vice versa, if the server speaks the other protocol, and no upload can exist.
    ///
    /// Does not rely on cached features that show the rejected protocol, because the server software may have been replaced since.
    ///
    /// - Parameter tus: The dialect of a new ``TUSServer``, which is tus. In tests, it can be a version of the IETF protocol; this method then
    ///   changes nothing.
    /// - Returns: Whether the protocol was changed. If so, the upload must start again.
    mutating func chooseOtherDialect(tus: Dialect) async throws -> Bool {
        let known = await record.checkpoint
        guard tus.ietf == nil, known.urls.isEmpty, known.whole.mayBeComplete != true else { return false }
        let speaksTUS = server.dialect.ietf == nil
        if !speaksTUS || knownFeatures?.isDeclared == true {
            server.profiles.forgetFeatures(of: server.address)
            var trial = server
            trial.dialect = tus
            let features = try? await trial.features(for: options.verification)
            try Task.checkCancellation()
            guard let features, features.isDeclared != speaksTUS else { return false }
            knownFeatures = features
        }
        if speaksTUS {
            let found = try? await server.negotiatedDialect()
            try Task.checkCancellation()
            guard let found else { return false }
            server.dialect = found.dialect
        } else {
            server.profiles.forgetDialect(of: server.address)
            server.dialect = tus
        }
        // The checkpoint describes the rejected creation, with its segments and its dialect.
        try await record.save { $0 = TUSCheckpoint() }
        return true
    }
}
