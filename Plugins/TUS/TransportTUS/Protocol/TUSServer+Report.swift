import CurlEngine
import Foundation
import HTTPSupport
import TransferCore

extension TUSServer {
    /// Asks anew what the server can do, and refuses whatever does not speak the protocol.
    ///
    /// Uploads need no answer to `OPTIONS`. So a server that gives none is asked in two other ways that make nothing there, and only one that shows
    /// no sign of the protocol then is refused. What it can do is not known of one that shows that it is a tus server and no more.
    func report() async throws -> EndpointReport {
        let answer = try await ask(.options) { try await send(.options, to: address) }
        if let report = try report(answer) { return report }
        guard Self.mayBeSilent(answer) else { throw try await refused(answer) }
        // Some answer only those who name the version, which is not wanted (tus 1.0.0, "Tus-Resumable").
        let named = try await ask(.options) {
            try await send(.options, to: address, headers: [dialect.versionHeader: dialect.version])
        }
        if let report = try report(named) { return report }
        if !named.isSuccess, named.failure().wantsPeace { throw named.failure() }
        // Of an upload that is not there, a tus server says so in its own name.
        let missing = try await ask(.head) { try await send(.head, to: addressOfNothing) }
        if missing.isFromTUSServer { return EndpointReport(version: dialect.version, latency: answer.reply.latency) }
        if missing.status == 401 || missing.status == 407 { throw missing.failure() }
        throw try await refused(answer)
    }

    /// - Returns: nil if the answer says nothing of the protocol.
    private func report(_ answer: TUSAnswer) throws(TransferError) -> EndpointReport? {
        let headers = answer.response.headers
        guard answer.isSuccess, answer.isFromTUSServer || headers[dialect.versionsHeader] != nil,
            let features = ServerFeatures(headers, in: dialect)
        else { return nil }
        try checkVersion(features)
        memory.note(features, of: address)
        return EndpointReport(
            version: dialect.version, features: features.extensions, maximumSize: features.maximumSize, latency: answer.reply.latency)
    }

    /// Whether a tus server may have answered so to a question that it does not know.
    private static func mayBeSilent(_ answer: TUSAnswer) -> Bool {
        if answer.isSuccess { return answer.response.headers[answer.dialect.versionHeader] == nil }
        return [400, 403, 404, 405, 410, 501].contains(answer.status) && !answer.refusesCertificate
    }

    /// A place below the endpoint's where no upload is.
    private var addressOfNothing: String {
        guard var components = URLComponents(string: address) else { return address }
        components.percentEncodedPath += (components.percentEncodedPath.hasSuffix("/") ? "" : "/") + "transferkit-asks-if-this-is-tus"
        return components.string ?? address
    }
}
