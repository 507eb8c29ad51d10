import CurlEngine
import HTTPSupport
import TransferCore

/// The known version of the IETF protocol at an endpoint.
struct KnownDialect: Sendable {
    var dialect: Dialect
    /// Whether the server has used or named this version. If not, the creation of an upload tries lower versions after a rejection.
    var isConfirmed: Bool
    /// The limits that the endpoint reported for all uploads.
    var limits = UploadLimits()
    /// The round-trip time of the request that found the version.
    var latency = Duration.zero
    /// Whether nginx is in front of the server. nginx 1.22 forwards an interim response as if it were the final one, and reads no more content.
    var isBehindNginx = false
}

extension TUSServer {
    /// Returns the version of the IETF protocol for new uploads at an endpoint that allows both protocols; nil to use tus.
    ///
    /// - Parameter features: The features in the server's response to the `OPTIONS` request of tus.
    func dialect(for features: TUSFeatures) async throws -> Dialect? {
        guard !features.isDeclared else { return nil }
        if let known = profiles.dialect(of: address) { return known.dialect }
        return features.announcesUploadResources ? try await negotiatedDialect()?.dialect : nil
    }

    /// Finds the newest version of the IETF protocol that both sides support, with `OPTIONS`. The cache keeps the result for a day.
    ///
    /// - Parameter cached: Whether to use the cache.
    /// - Returns: The version; nil if no response shows a supported version.
    /// - Throws: A ``TransferError``. Its class is ``FailureClass/unsupported`` if the server rejects all versions that this module
    ///   supports, but its response has a header of the protocol.
    func negotiatedDialect(cached: Bool = true) async throws -> KnownDialect? {
        if cached, let known = profiles.dialect(of: address) { return known }
        var trial = self
        trial.dialect = Dialect.ietfVersions[0]
        // The version that the server named when it rejected another one. A request in this version then returns the limits.
        var named: KnownDialect?
        while true {
            let tusResponse = try await convertingErrors(.options) { [trial] in try await trial.send(.options, to: address) }
            if let known = trial.dialect(in: tusResponse) {
                if !(200..<300).contains(tusResponse.status), named == nil {
                    named = known
                    trial.dialect = known.dialect
                    continue
                }
                var result = known
                result.isConfirmed = known.isConfirmed || named != nil
                profiles.store(result, of: address)
                return result
            }
            if let named {
                profiles.store(named, of: address)
                return named
            }
            guard [400, 412].contains(tusResponse.status), !tusResponse.refusesCertificate else {
                if tusResponse.status == 407 || tusResponse.failure().asksToBackOff { throw tusResponse.failure() }
                return nil
            }
            guard let next = trial.dialect.lowerVersions.first else {
                guard tusResponse.isFromTUSServer else { return nil }
                throw rejectedVersions(tusResponse)
            }
            trial.dialect = next
        }
    }

    /// Sends a request without content to an existing upload. If the server no longer accepts the upload's version (IETF), tries the version that
    /// the server names, and then all other supported versions.
    ///
    /// - Parameter send: Sends the request in the version of the given server.
    /// - Returns: The response in the version that the server accepts. If the server rejects all versions, the response in the upload's
    ///   version, provided that this response has the status 400 and no header of the protocol.
    /// - Throws: The error of `send`, or a ``TransferError`` if the server rejects all versions and no response is returned. Its class is
    ///   ``FailureClass/resumeLost`` if the server now speaks tus instead, otherwise ``FailureClass/unsupported``.
    func sendInAcceptedVersion(
        _ request: TUSRequest, at url: String, _ send: (TUSServer) async throws -> TUSResponse
    ) async throws -> TUSResponse {
        let first = try await convertingErrors(request, at: url) { try await send(self) }
        guard first.mayRejectVersion else { return first }
        var (trial, tusResponse) = (self, first)
        var others = Dialect.ietfVersions.filter { $0.version != dialect.version }
        while let next = tusResponse.namedVersion(among: others) ?? others.first {
            others.removeAll { $0.version == next.version }
            trial.dialect = next
            tusResponse = try await convertingErrors(request, at: url) { [trial] in try await send(trial) }
            guard tusResponse.mayRejectVersion else {
                if tusResponse.isFromTUSServer { trial.confirmDialect() }
                return tusResponse
            }
        }
        guard first.isFromTUSServer || first.status == 412 else { return first }
        throw changeToTUS(first) ?? rejectedVersions(first)
    }

    /// Returns the version that a response to `OPTIONS` shows; nil if the response shows none, or rejects the requested version without naming
    /// another one.
    private func dialect(in tusResponse: TUSResponse) -> KnownDialect? {
        let (limits, latency) = (tusResponse.limits ?? UploadLimits(), tusResponse.endpointResponse.latency)
        let named = Dialect.draft(namedIn: tusResponse.response.headers)
        let isBehindNginx = tusResponse.response.headers["Server"]?.lowercased().hasPrefix("nginx") ?? false
        if (200..<300).contains(tusResponse.status) {
            guard tusResponse.isFromTUSServer else { return nil }
            return KnownDialect(
                dialect: named ?? dialect, isConfirmed: named != nil, limits: limits, latency: latency, isBehindNginx: isBehindNginx)
        }
        guard [400, 412].contains(tusResponse.status), let named, named.version != dialect.version else { return nil }
        return KnownDialect(dialect: named, isConfirmed: true, limits: limits, latency: latency, isBehindNginx: isBehindNginx)
    }

    /// The error for a server that supports none of the versions.
    func rejectedVersions(_ tusResponse: TUSResponse) -> TransferError {
        let headers = tusResponse.response.headers
        let named = [
            headers[Dialect.interopHeader].map { "draft version \($0.prefix(20)) of Resumable Uploads for HTTP" },
            headers[Dialect.tus.versionsHeader].map { "tus \($0.prefix(100))" },
        ].compactMap(\.self)
        let what = named.isEmpty ? "does not report what it supports" : "supports \(named.joined(separator: " and "))"
        let own = Dialect.ietfVersions.filter { $0.versionHeader != nil }.map(\.version).joined(separator: ", ")
        return tusResponse.endpointResponse.error(
            .unsupported, .unsupportedVersion, by: "The server \(origin)",
            "rejects all versions of Resumable Uploads for HTTP that this transport supports (draft versions \(own), and the final one); it "
                + what, method: tusResponse.endpointResponse.method)
    }

    /// Stores in the cache that the server has used the current version.
    func confirmDialect() {
        guard profiles.dialect(of: address).map({ !$0.isConfirmed || $0.dialect.version != dialect.version }) ?? true else { return }
        var known = profiles.dialect(of: address) ?? KnownDialect(dialect: dialect, isConfirmed: true)
        (known.dialect, known.isConfirmed) = (dialect, true)
        profiles.store(known, of: address)
    }

    /// Whether the server has used or named the current version.
    var isDialectConfirmed: Bool { profiles.dialect(of: address).map { $0.isConfirmed && $0.dialect.version == dialect.version } ?? false }
}

extension TUSResponse {
    /// Whether the server may have rejected the version of the request (IETF).
    var mayRejectVersion: Bool { dialect.ietf != nil && [400, 412].contains(status) }

    /// Returns the version that a rejection names or, if that version is not supported, the next lower supported one; nil if this version
    /// is not among the given versions.
    func namedVersion(among versions: [Dialect]) -> Dialect? {
        guard mayRejectVersion, let named = Dialect.draft(namedIn: response.headers) else { return nil }
        return versions.first { $0.version == named.version }
    }
}
