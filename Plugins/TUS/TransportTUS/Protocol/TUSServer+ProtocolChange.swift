import CurlEngine
import HTTPSupport
import TransferCore

extension TransferError.Code {
    /// A tus server was replaced by a server of the IETF protocol, or vice versa, so the state of the upload is unknown.
    static let protocolChanged = Self(rawValue: "protocolChanged")
}

/// The replacement of a tus server by a server of the IETF protocol at the same address, or vice versa. An upload can't resume with the other
/// protocol.
extension TUSServer {
    /// Returns the error for a request of the IETF protocol that a tus server rejected; nil for any other response.
    func changeToTUS(_ tusResponse: TUSResponse) -> TransferError? {
        // Servers of both protocols may send other rejections without a header of the IETF protocol.
        guard tusResponse.showsOnlyTUS, [412, 415].contains(tusResponse.status) else { return nil }
        // If the endpoint must not use tus, a restart could not succeed.
        guard options.dialect != .ietf, tusResponse.request == .head || tusResponse.request == .patch else {
            return rejectedVersions(tusResponse)
        }
        return cannotResume(tusResponse, with: Dialect.tus)
    }

    /// Returns the error for a rejected tus request, if the server now speaks only the IETF protocol; nil if it may still speak tus.
    ///
    /// - Parameter features: The server's response to `OPTIONS`.
    func changeFromTUS(_ tusResponse: TUSResponse, _ features: TUSResponse) async throws -> TransferError? {
        guard tusResponse.mayComeFromServerWithoutTUS, TUSFeatures(features.response.headers, in: dialect) == nil else { return nil }
        let known = try? await negotiatedDialect(cached: false)
        try Task.checkCancellation()
        guard let known else { return nil }
        profiles.forgetFeatures(of: address)
        if tusResponse.request == .head, options.dialect != .tus { return cannotResume(tusResponse, with: known.dialect) }
        return tusResponse.endpointResponse.error(
            .unreachable, .notThisProtocol, by: "The server \(origin)",
            "speaks \(known.dialect.name) instead of \(dialect.name) at this address; use auto or ietf in the setting dialect")
    }

    private func cannotResume(_ tusResponse: TUSResponse, with other: Dialect) -> TransferError {
        tusResponse.endpointResponse.error(
            .resumeLost, .protocolChanged, by: "The server \(origin)",
            "now speaks \(other.name) instead of \(dialect.name), so the upload can't resume")
    }
}

extension TUSResponse {
    /// Whether the response to a request of the IETF protocol shows tus, and no sign of the IETF protocol.
    var showsOnlyTUS: Bool {
        let (headers, tus) = (response.headers, Dialect.tus)
        return dialect.ietf != nil && !isFromTUSServer && (headers[tus.versionHeader] != nil || headers[tus.versionsHeader] != nil)
    }

    /// Whether a server that does not speak tus might send this response to a tus request. ``TUSServer/features(for:)`` and the creation of
    /// an upload recognize other responses of such servers.
    var mayComeFromServerWithoutTUS: Bool {
        guard dialect.ietf == nil, !isFromTUSServer, !refusesCertificate else { return false }
        switch request {
        case .create: return [400, 412, 415].contains(status)
        case .head: return (200..<300).contains(status) || [400, 405, 412, 415, 501].contains(status)
        default: return false
        }
    }
}
