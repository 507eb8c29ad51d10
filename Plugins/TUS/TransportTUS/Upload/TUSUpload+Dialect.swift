import HTTPSupport
import TransferCore

extension TUSUpload {
    /// Chooses the protocol of the earlier attempts or, for a new upload, the one that the endpoint's options and the server's response select.
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

    /// Returns whether the server may have rejected the creation of an upload because it speaks the other protocol.
    func mayHaveOtherDialect(_ error: TransferError) -> Bool {
        server.options.dialect == .auto
            && (error.failureClass == .unreachable && error.code == .notThisProtocol
                || error.code == .unsupportedVersion && server.dialect.ietf != nil)
    }

    /// Chooses the other protocol, if the server speaks it, and no upload exists. Queries the server again, because the cache may describe
    /// server software that has since been replaced.
    ///
    /// - Parameter tus: The dialect of the transport: tus, except in tests.
    /// - Returns: Whether this method chose the other protocol.
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
        // The checkpoint describes the rejected creation, with its segments and its protocol version.
        try await record.save { $0 = TUSCheckpoint() }
        return true
    }
}
