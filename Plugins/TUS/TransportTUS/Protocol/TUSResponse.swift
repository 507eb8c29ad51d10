import CurlEngine
import Foundation
import HTTPSupport
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A server's response, interpreted by the rules of tus or of the IETF protocol. "(IETF)" marks the properties that only the IETF protocol has.
struct TUSResponse {
    let request: TUSRequest
    let endpointResponse: EndpointResponse
    let dialect: Dialect
    /// The origin of the endpoint's address.
    let origin: Origin
    /// The checksum of the request's body, if the transport computed it while sending the body.
    let contentHash: RunningChecksum?

    init(_ request: TUSRequest, _ endpointResponse: EndpointResponse, server: TUSServer, contentHash: RunningChecksum? = nil) {
        self.request = request
        self.endpointResponse = endpointResponse
        self.contentHash = contentHash
        dialect = server.dialect
        origin = server.origin
    }

    var response: HTTPResponse { endpointResponse.response }

    var status: Int { response.status }

    /// Whether the request succeeded according to the protocol. The version header may be missing in a response to `OPTIONS`, because some
    /// servers omit it.
    var isSuccess: Bool {
        (200..<300).contains(status) && (isFromTUSServer || request == .options || dialect.ietf != nil) && !hasCreatedAnotherUpload
    }

    /// Whether the server created another upload in response to `PATCH`, because it ignores `X-HTTP-Method-Override`.
    var hasCreatedAnotherUpload: Bool { request == .patch && endpointResponse.method != request.rawValue && status == 201 }

    /// Whether this is nginx's error page for clients without a valid certificate.
    var refusesCertificate: Bool { !isFromTUSServer && response.refusesClientCertificate }

    /// Whether the response is from a gateway that got no valid response from the server (RFC 9110, sections 15.6.3 and 15.6.5).
    var isFromGateway: Bool { (status == 502 || status == 504) && !isFromTUSServer }

    /// In tus, whether the response has the version header (tus 1.0.0, "Tus-Resumable") with this version. In the IETF protocol, whether
    /// the response has any header of the protocol. A login page has neither.
    var isFromTUSServer: Bool { dialect.isDeclared(in: response.headers) }

    /// The number of bytes that the server has; nil if the response contains no valid number.
    var offset: Int64? { number(dialect.offsetHeader) }

    /// The length of the upload according to the server; nil if the response contains no valid number.
    var length: Int64? { number(dialect.lengthHeader) }

    /// The time at which the server will remove the upload, in seconds since 1970 by the server's clock.
    var expires: Int? {
        // The age has at most 15 digits, so the sum does not overflow.
        if let age = limits?.maximumAge { return serverTime + Int(age) }
        return response.headers[dialect.expiryHeader].flatMap(secondsSince1970(ofHTTPDate:))
    }

    /// Whether the upload is complete according to the server (IETF); nil if the response does not declare this.
    var isComplete: Bool? { dialect.ietf?.isComplete(in: response.headers) }

    /// The server's limits (IETF); nil if the response contains no valid limits.
    var limits: UploadLimits? { dialect.ietf?.limits(in: response.headers) }

    /// The problem document that explains a rejection (IETF); nil if the response contains none.
    var problem: UploadProblem? { dialect.ietf == nil ? nil : UploadProblem(response) }

    /// The server's offset in a rejection of a request that had a different offset (IETF), from the header or the problem document. Nil if
    /// the protocol version does not guarantee the offset, if the response contains none, or if the header and the document differ.
    var conflictOffset: Int64? {
        guard status == 409, dialect.ietf?.conflictHasOffset == true else { return nil }
        let explained = problem?.expectedOffset
        guard let offset, let explained else { return offset ?? explained }
        return offset == explained ? offset : nil
    }

    /// Whether this is a web page without any sign of the protocol, for example a login page.
    var isUnrelatedPage: Bool {
        !isFromTUSServer && response.headers["Content-Type"]?.lowercased().hasPrefix("text/html") == true
    }

    /// The server's time in seconds since 1970. If the response has no valid date, this machine's time.
    var serverTime: Int { response.headers["Date"].flatMap(secondsSince1970(ofHTTPDate:)) ?? time(nil) }

    /// The URL in the `Location` header; nil unless it is an `http` or `https` URL.
    var location: URL? { response.location }

    private func number(_ name: String) -> Int64? {
        guard let field = response.headers[name] else { return nil }
        // In the IETF protocol, parameters can follow a number (RFC 9651, section 3.1.2).
        let text = dialect.ietf == nil ? field[...] : field.prefix { $0 != ";" && $0 != " " }
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        // Limits the number to just above the largest valid size, so that sums with it do not overflow.
        return Int64(text).map { min($0, RemoteUpload.sizes.upperBound + 1) }
    }
}
