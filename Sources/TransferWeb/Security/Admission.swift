import Crypto
import Foundation
import Locking

/// Decides which requests the server accepts, and what access their clients have.
final class Admission: Sendable {
    /// The access of a client, and how the client authenticated.
    struct Client: Sendable {
        let access: Access
        /// Whether a browser sent the cookie automatically, so that a page of another site could have caused the request.
        let usesCookie: Bool
    }

    let tokens: AccessTokens
    private let requestGuard: RequestGuard
    /// Separate limits for clients with a valid token or cookie and for all other clients, so that the other clients can't use up the limit
    /// of the clients with access.
    private let (tokenClients, otherClients): (RequestRate, RequestRate)
    private let isReadOnly: Bool
    private let isSecure: Bool
    private let port = Locked(0)

    init(_ tokens: AccessTokens, _ options: WebServerOptions) {
        self.tokens = tokens
        isReadOnly = options.isReadOnly
        isSecure = options.certificate != nil
        requestGuard = RequestGuard(names: options.hostNames + [options.address], isSecure: isSecure)
        let limits = options.limits
        tokenClients = RequestRate(burst: limits.requestBurst, perSecond: limits.requestsPerSecond)
        otherClients = RequestRate(burst: limits.requestBurst / 4, perSecond: limits.requestsPerSecond / 4)
    }

    /// Sets the port of the running server, which ``cookieName`` contains.
    func setPort(_ value: Int) { port.withLock { $0 = value } }

    /// The name of the cookie. Browsers share cookies among the ports of a host, so the name contains the port. Otherwise, another server on this
    /// machine could replace the cookie.
    var cookieName: String { "\(isSecure ? "__Host-" : "")transferq-\(port.withLock { $0 })" }

    /// Checks the rate of requests, checks the host and the origin of this request, and identifies the client.
    ///
    /// - Returns: The client that sent the request; nil without a valid token or cookie.
    /// - Throws: A ``Problem`` if the server receives too many requests, if the server does not serve the host, or if a page of another site may have
    ///   caused the request.
    func admit(_ request: WebRequest) throws(Problem) -> Client? {
        let client = client(of: request)
        guard (client == nil ? otherClients : tokenClients).admit() else {
            var problem = Problem(429, "tooManyRequests", "The server receives too many requests. Try again later.")
            problem.headers = [(name: "Retry-After", value: "1")]
            throw problem
        }
        if let refusal = requestGuard.refusal(of: request) { throw refusal }
        return client
    }

    private func client(of request: WebRequest) -> Client? {
        if let value = request["Authorization"] {
            let words = value.split(separator: " ", maxSplits: 1)
            guard words.count == 2, words[0].lowercased() == "bearer" else { return nil }
            return tokens.access(bearer: String(words[1])).map { Client(access: limited($0), usesCookie: false) }
        }
        return request.cookie(cookieName).flatMap(tokens.access(cookie:)).map { Client(access: limited($0), usesCookie: true) }
    }

    private func limited(_ access: Access) -> Access { isReadOnly ? .read : access }

    /// The header that sets the cookie for the token of a sign-in request; nil for an unknown token.
    func cookie(for token: String) -> (name: String, value: String)? {
        guard let access = tokens.access(bearer: token) else { return nil }
        return (
            name: "Set-Cookie",
            value: "\(cookieName)=\(tokens.cookie(for: access)); Path=/; HttpOnly; SameSite=Strict\(isSecure ? "; Secure" : "")"
        )
    }

    var expiredCookie: (name: String, value: String) {
        (name: "Set-Cookie", value: "\(cookieName)=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict\(isSecure ? "; Secure" : "")")
    }

    func isFormToken(_ text: String, for access: Access) -> Bool {
        SHA256.hash(data: Data(text.utf8)) == SHA256.hash(data: Data(tokens.formToken(for: access).utf8))
    }

    func checkChange(by client: Client) throws(Problem) {
        guard client.access == .write else {
            throw Problem(
                403, "readOnly", "This \(client.usesCookie ? "page" : "token") can only read. Use the token in \(AccessTokens.fileName).")
        }
    }
}
