import CurlEngine
import Foundation
import TransferCore
import TransportSupport

/// One endpoint as one attempt talks to it: puts the headers on each request that tus and the endpoint want.
struct TUSServer {
    /// The version of the protocol that is spoken.
    static let version = "1.0.0"

    /// Where uploads are created.
    let address: String
    let origin: Origin
    private let userName: String?
    private let settings: EndpointSettings
    private let references: [CredentialReference]
    private let provider: any CredentialProvider
    private let engine: CurlEngine
    private let acceptance: Acceptance

    init(
        _ endpoint: Endpoint, credentials: any CredentialProvider, engine: CurlEngine, acceptance: Acceptance
    ) throws(TransferError) {
        let url = try endpoint.validate()
        guard let origin = Origin(url), var components = URLComponents(url: url, resolvingAgainstBaseURL: true) else {
            throw TransferError(.permanent, .invalidEndpoint, "The endpoint address must begin with https:// or http:// for tus.")
        }
        userName = components.user
        components.user = nil
        address = components.string ?? endpoint.address
        self.origin = origin
        settings = try EndpointSettings(endpoint.settings)
        references = endpoint.credentials
        provider = credentials
        self.engine = engine
        self.acceptance = acceptance
    }

    /// Sends one request and gives back whatever the server answers.
    ///
    /// - Throws: A ``CurlEngineError`` when there is no answer, a ``TransferError``, or `CancellationError`.
    func send(
        _ kind: TUSRequest, to address: String, headers: HTTPHeaders = HTTPHeaders(), body: HTTPBody = .none,
        pacing: (@Sendable (Int) -> Allowance)? = nil, progress: (@Sendable (Int64) -> Void)? = nil
    ) async throws -> TUSAnswer {
        var headers = headers
        headers["User-Agent"] = "TransferKit"
        if kind != .options { headers["Tus-Resumable"] = Self.version }
        let isOwnOrigin = URL(string: address).flatMap(Origin.init) == origin
        let credentials = isOwnOrigin ? try await credentialHeaders() : []
        if isOwnOrigin {
            for field in settings.headers { headers.append(field.name, field.value) }
            for field in credentials { headers.append(field.name, field.value) }
        }
        let request = HTTPRequest(
            method: kind.rawValue, url: address, headers: headers, body: body,
            certificateAuthorityFile: settings.certificateAuthorityFile)
        let start = ContinuousClock.now
        let response = try await engine.perform(request, pacing: pacing, progress: progress)
        var answer = TUSAnswer(kind, response, server: self, secrets: credentials.map(\.value), latency: ContinuousClock.now - start)
        answer.withheldCredentials = !isOwnOrigin && !references.isEmpty
        answer.sentCredentials = !credentials.isEmpty
        answer.credentialsWereAccepted = acceptance.wereAccepted(credentials, at: origin.description)
        if answer.isSuccess, isOwnOrigin { acceptance.note(credentials, at: origin.description) }
        return answer
    }

    private func credentialHeaders() async throws -> [HTTPHeaders.Field] {
        var fields = HTTPHeaders()
        for reference in references {
            let secret = try await provider.secret(for: reference).reveal()
            guard !secret.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 }) else {
                throw TransferError(
                    .credentials, .credentialsUnavailable,
                    "The secret of the kind \(reference.kind.rawValue) for \(origin) has a line break or a control character; remove it.")
            }
            switch reference.kind {
            case .bearerToken:
                fields.append("Authorization", "Bearer \(secret)")
            case .password:
                guard let userName else {
                    throw TransferError(
                        .permanent, .invalidEndpoint,
                        "The endpoint \(origin) has a password but no user name; write the address as \(origin.scheme)://user@host/….")
                }
                fields.append("Authorization", "Basic \(Data("\(userName):\(secret)".utf8).base64EncodedString())")
            case .header:
                guard let name = reference.name else {
                    throw TransferError(.permanent, .invalidEndpoint, "A header credential of \(origin) does not name its header.")
                }
                fields.append(name, secret)
            default:
                throw TransferError(
                    .unsupported, .unsupported, "The tus transport has no use for a credential of the kind \(reference.kind.rawValue).")
            }
        }
        return Array(fields)
    }
}

/// The requests of the protocol.
enum TUSRequest: String {
    case options = "OPTIONS"
    case create = "POST"
    case head = "HEAD"
    case patch = "PATCH"
    case delete = "DELETE"
}
