import CurlEngine
import Foundation
import HTTPClient

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// What a server answered, and what is needed to judge it.
struct TUSAnswer {
    let request: TUSRequest
    let response: HTTPResponse
    let dialect: Dialect
    /// The endpoint's own.
    let origin: Origin
    let latency: Duration
    /// The server's own words about a refusal: one short line, or nil when they are a page, or hold something secret.
    let words: String?
    /// Whether the request went to an origin that the endpoint's credentials are not for.
    var withheldCredentials = false
    var sentCredentials = false
    /// Whether a `PATCH` went by the name of `POST`.
    var wasSentAsCreation = false
    /// What the proxy is called that may be the one who answered; nil where there is none.
    var proxyName: String?
    /// The checksum of what was sent, where it was computed on the way.
    var contentHash: ContentHash?
    /// Whether the endpoint accepted these same credentials before.
    var credentialsWereAccepted = false

    init(_ request: TUSRequest, _ response: HTTPResponse, server: TUSServer, secrets: [String], latency: Duration) {
        self.request = request
        self.response = response
        self.latency = latency
        dialect = server.dialect
        origin = server.origin
        words = response.words(without: secrets)
    }

    var status: Int { response.status }

    /// Whether the server did what was asked, in the protocol's own terms. `OPTIONS` is answered by some without a version.
    var isSuccess: Bool { (200..<300).contains(status) && (isFromTUSServer || request == .options) && !hasMadeAnother }

    /// Whether the server took a request to append for one to create, as one does that does not know of another method in `X-HTTP-Method-Override`.
    var hasMadeAnother: Bool { wasSentAsCreation && status == 201 }

    /// Whether it is the page by which nginx refuses all requests of a client whose certificate is missing, has expired, or is not one that it
    /// knows.
    var refusesCertificate: Bool { !isFromTUSServer && response.refusesClientCertificate }

    /// Whether the connection may have broken within the request. A tus server that names its version has read the request.
    var mayBeOfCutRequest: Bool { !isFromTUSServer && response.mayBeOfCutRequest }

    /// Whether a gateway answered because the server behind it did not (RFC 9110, sections 15.6.3 and 15.6.5).
    var isFromGateway: Bool { (status == 502 || status == 504) && !isFromTUSServer }

    /// Every answer of a tus server names its version (tus 1.0.0, "Tus-Resumable"); a login page does not.
    var isFromTUSServer: Bool { dialect.isSpoken(in: response.headers) }

    /// How many bytes the server has, if it said so in a way that makes sense.
    var offset: Int64? { number(dialect.offsetHeader) }

    /// How long the server takes the upload to be.
    var length: Int64? { number(dialect.lengthHeader) }

    /// When the server means to remove the upload, in seconds since 1970 by its own clock.
    var expires: Int? { response.headers[dialect.expiryHeader].flatMap(secondsSince1970(ofHTTPDate:)) }

    /// What time it is for the server, in seconds since 1970; by our clock if it does not say.
    var serverTime: Int { response.headers["Date"].flatMap(secondsSince1970(ofHTTPDate:)) ?? time(nil) }

    /// Where the answer points to; nil if that is no `http` or `https` URL.
    var location: URL? { response.location }

    private func number(_ name: String) -> Int64? {
        guard let text = response.headers[name], !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        // What is beyond any upload stays so, and sums with it do not overflow.
        return Int64(text).map { min($0, RemoteUpload.sizes.upperBound + 1) }
    }
}
