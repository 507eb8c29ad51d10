import CurlEngine
import Foundation
import HTTPSupport
import TransferCore

extension TUSServer {
    /// Requests the server's features, bypassing the cache, and rejects a server that does not support the protocol.
    ///
    /// Some tus servers do not support `OPTIONS`. If the response may come from such a server, this method looks for the protocol's version
    /// with up to two more requests, which create no upload. If only the last response contains the version, the report has no features.
    ///
    /// If the endpoint's options allow both protocols, the report of a tus server also names the version of the IETF protocol. A server that speaks
    /// only the IETF protocol is accepted, too.
    ///
    /// - Throws: A ``TransferError`` if the server supports no protocol that the options allow, or there is no response; or `CancellationError`.
    func report() async throws -> EndpointReport {
        if options.dialect == .ietf { return try await resourceReport() }
        let tusResponse = try await convertingErrors(.options) { try await send(.options, to: address) }
        if var report = try report(tusResponse) {
            // The server was already accepted, so a failure of this request does not matter.
            if options.dialect == .auto, let known = try? await negotiatedDialect(cached: false) {
                report.otherVersions = [known.dialect.name]
            }
            return report
        }
        guard Self.isPossibleWithoutOptions(tusResponse) else { throw try await refused(tusResponse) }
        // Some servers respond to OPTIONS only if the request has a version header, although the protocol does not require it (tus 1.0.0,
        // "Tus-Resumable").
        var headers = HTTPHeaders()
        headers[dialect.versionHeader] = dialect.version
        if options.dialect == .auto { headers[Dialect.interopHeader] = Dialect.ietfVersions[0].version }
        let named = try await convertingErrors(.options) { [headers] in try await send(.options, to: address, headers: headers) }
        if let report = try report(named) { return report }
        if options.dialect == .auto, [tusResponse, named].contains(where: { IETFTerms.areDeclared(in: $0.response.headers) }) {
            return try await resourceReport()
        }
        if !named.isSuccess, named.failure().asksToBackOff { throw named.failure() }
        // A tus server includes its version even in a response about a missing upload.
        let missing = try await convertingErrors(.head) { try await send(.head, to: urlOfMissingUpload) }
        if missing.isFromTUSServer { return EndpointReport(version: dialect.version, latency: tusResponse.endpointResponse.latency) }
        if missing.status == 401 || missing.status == 407 { throw missing.failure() }
        throw try await refused(tusResponse)
    }

    private func resourceReport() async throws -> EndpointReport {
        guard let known = try await negotiatedDialect(cached: false) else {
            throw TransferError(
                .unreachable, .notThisProtocol,
                "The server \(origin) does not announce Resumable Uploads for HTTP in response to OPTIONS; check the address. Some servers announce it "
                    + "only during an upload.")
        }
        let limits = [
            "min-size": known.limits.minimumSize, "max-append-size": known.limits.maximumAppendSize,
            "min-append-size": known.limits.minimumAppendSize,
        ].compactMapValues(\.self)
        return EndpointReport(
            version: known.dialect.name, maximumSize: known.limits.maximumSize, limits: limits, latency: known.latency)
    }

    /// Returns the report for a response to `OPTIONS`, and caches the features; nil if the response does not identify a tus server.
    private func report(_ tusResponse: TUSResponse) throws(TransferError) -> EndpointReport? {
        let headers = tusResponse.response.headers
        guard tusResponse.isSuccess, tusResponse.isFromTUSServer || headers[dialect.versionsHeader] != nil,
            let features = TUSFeatures(headers, in: dialect)
        else { return nil }
        try checkVersion(features)
        profiles.store(features, of: address)
        return EndpointReport(
            version: dialect.version, features: features.extensions, maximumSize: features.maximumSize,
            latency: tusResponse.endpointResponse.latency)
    }

    /// Whether a tus server that does not support `OPTIONS` might send this response.
    private static func isPossibleWithoutOptions(_ tusResponse: TUSResponse) -> Bool {
        if tusResponse.isSuccess { return tusResponse.response.headers[tusResponse.dialect.versionHeader] == nil }
        return [400, 403, 404, 405, 410, 501].contains(tusResponse.status) && !tusResponse.refusesCertificate
    }

    private var urlOfMissingUpload: String {
        guard var components = URLComponents(string: address) else { return address }
        components.percentEncodedPath += (components.percentEncodedPath.hasSuffix("/") ? "" : "/") + "transferkit-asks-if-this-is-tus"
        return components.string ?? address
    }
}
