import CurlEngine
import Foundation
import HTTPSupport
import TransferCore

extension TUSServer {
    /// Asks again for the server's features, and rejects a server that does not speak the protocol.
    ///
    /// Uploads do not need `OPTIONS`. A server without a useful response is asked in two other ways that create nothing, and is rejected
    /// only if none shows the protocol. The features of such a server are unknown.
    func report() async throws -> EndpointReport {
        let answer = try await ask(.options) { try await send(.options, to: address) }
        if let report = try report(answer) { return report }
        guard Self.mayBeSilent(answer) else { throw try await refused(answer) }
        // Some servers answer only with a version header, although it is not required (tus 1.0.0, "Tus-Resumable").
        let named = try await ask(.options) {
            try await send(.options, to: address, headers: [dialect.versionHeader: dialect.version])
        }
        if let report = try report(named) { return report }
        if !named.isSuccess, named.failure().asksToBackOff { throw named.failure() }
        // A tus server responds with its version also for a missing upload.
        let missing = try await ask(.head) { try await send(.head, to: addressOfNothing) }
        if missing.isFromTUSServer { return EndpointReport(version: dialect.version, latency: answer.reply.latency) }
        if missing.status == 401 || missing.status == 407 { throw missing.failure() }
        throw try await refused(answer)
    }

    /// - Returns: nil if the response has nothing about the protocol.
    private func report(_ answer: TUSAnswer) throws(TransferError) -> EndpointReport? {
        let headers = answer.response.headers
        guard answer.isSuccess, answer.isFromTUSServer || headers[dialect.versionsHeader] != nil,
            let features = TUSFeatures(headers, in: dialect)
        else { return nil }
        try checkVersion(features)
        profiles.note(features, of: address)
        return EndpointReport(
            version: dialect.version, features: features.extensions, maximumSize: features.maximumSize, latency: answer.reply.latency)
    }

    /// Whether a tus server that does not support `OPTIONS` can answer like this.
    private static func mayBeSilent(_ answer: TUSAnswer) -> Bool {
        if answer.isSuccess { return answer.response.headers[answer.dialect.versionHeader] == nil }
        return [400, 403, 404, 405, 410, 501].contains(answer.status) && !answer.refusesCertificate
    }

    /// The URL of a missing upload below the endpoint's address.
    private var addressOfNothing: String {
        guard var components = URLComponents(string: address) else { return address }
        components.percentEncodedPath += (components.percentEncodedPath.hasSuffix("/") ? "" : "/") + "transferkit-asks-if-this-is-tus"
        return components.string ?? address
    }
}
