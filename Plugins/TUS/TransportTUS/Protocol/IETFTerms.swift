package import CurlEngine

/// The terms of the IETF protocol *Resumable Uploads for HTTP* that tus 1.0.0 lacks, and the rules that differ between its versions.
///
/// A request to an ordinary resource creates an upload resource, which has its own URL. The server announces this URL in an interim response
/// (104) while the content is being sent. The last request for the content declares that it completes the upload; its final response comes from
/// the resource to which the content was sent.
package struct IETFTerms: Hashable, Sendable {
    /// The status of interim responses about the upload resource.
    static let interimStatus = 104
    /// The content type of `PATCH`, which servers list in `Accept-Patch`.
    static let contentType = "application/partial-upload"
    private static let complete = "Upload-Complete"
    private static let incomplete = "Upload-Incomplete"

    /// Whether the header for completeness is `Upload-Incomplete`, which is true as long as the upload is not complete.
    package var isInverted = false
    /// Whether final responses from servers of this version may contain the opposite header, `Upload-Complete` instead of `Upload-Incomplete` or
    /// vice versa. swift-nio-extras swaps the two headers in final responses.
    package var mayBeSwapped = false
    /// Whether final responses to requests that complete the upload contain the header for completeness. If not, the success of such a request
    /// completes the upload.
    package var declaresCompletion = true
    /// Whether a 409 response contains the server's offset, so that no `HEAD` is necessary.
    package var conflictHasOffset = false
    /// The response header with the server's limits; nil if the version has none.
    package var limitHeader: String? = "Upload-Limit"
    /// The key of an upload's lifetime in the header with the limits.
    package var ageKey = "max-age"

    /// The header that declares completeness.
    package var completenessHeader: String { isInverted ? Self.incomplete : Self.complete }

    /// Returns the value of ``completenessHeader`` for a request.
    ///
    /// - Parameter isComplete: Whether the request completes the upload.
    package func completeness(_ isComplete: Bool) -> String { isComplete != isInverted ? "?1" : "?0" }

    /// Returns whether a response declares the upload to be complete; nil if the response declares neither completeness nor incompleteness,
    /// or if the value is invalid.
    package func isComplete(in headers: HTTPHeaders) -> Bool? {
        if let value = Self.boolean(headers[completenessHeader]) { return value != isInverted }
        guard mayBeSwapped, let value = Self.boolean(headers[isInverted ? Self.complete : Self.incomplete]) else { return nil }
        return value == isInverted
    }

    private static func boolean(_ text: String?) -> Bool? {
        guard let text, case .boolean(let value)? = StructuredFields.item(text) else { return nil }
        return value
    }

    /// Returns the limits in a response; nil if there are none, or the header is invalid.
    package func limits(in headers: HTTPHeaders) -> UploadLimits? { headers[limitHeader].flatMap { UploadLimits($0, ageKey: ageKey) } }

    /// Returns whether a response is from a server with any version of the protocol: it contains a header of the protocol.
    static func areDeclared(in headers: HTTPHeaders) -> Bool {
        [Dialect.interopHeader, complete, incomplete, "Upload-Limit", "Upload-Offset"].contains { headers[$0] != nil }
            || headers["Accept-Patch"]?.lowercased().contains(contentType) == true
    }
}

extension Dialect {
    /// The header with the version of a draft.
    static let interopHeader = "Upload-Draft-Interop-Version"

    /// The versions of the IETF protocol that this module supports, in order of preference: the drafts by their interop version, and the
    /// final protocol. A server of the final protocol ignores the draft's version, so the final protocol comes last.
    package static let ietfVersions: [Dialect] = [10, 9, 8, 6, 5, 3].map(draft) + [final]

    /// The final protocol, which has no version header.
    package static let final = ietf(version: "final", header: nil, IETFTerms(conflictHasOffset: true))

    private static func draft(_ version: Int) -> Dialect {
        ietf(
            version: "\(version)", header: interopHeader,
            IETFTerms(
                isInverted: version < 4, mayBeSwapped: version <= 6, declaresCompletion: version > 6, conflictHasOffset: version >= 9,
                limitHeader: version < 6 ? nil : "Upload-Limit", ageKey: version < 7 ? "expires" : "max-age"))
    }

    private static func ietf(version: String, header: String?, _ terms: IETFTerms) -> Dialect {
        Dialect(
            versionHeader: header, version: version, patchContentType: IETFTerms.contentType,
            creationContentType: "application/octet-stream", offsetHeader: "Upload-Offset", lengthHeader: "Upload-Length", ietf: terms)
    }

    /// The name that checkpoints store; nil for tus 1.0.0.
    package var storedName: String? { ietf.map { _ in "ietf-\(version)" } }

    /// Creates the dialect with a stored name; nil if no supported dialect has this name.
    ///
    /// - Parameter name: The stored name; nil for tus 1.0.0.
    package init?(storedName name: String?) {
        guard let known = ([.tus] + Self.ietfVersions).first(where: { $0.storedName == name }) else { return nil }
        self = known
    }

    /// The name to show to users.
    var name: String {
        guard ietf != nil else { return "tus \(version)" }
        return versionHeader == nil ? "Resumable Uploads for HTTP" : "Resumable Uploads for HTTP (draft version \(version))"
    }

    /// The versions to try, in this order, if the server rejects this one.
    var lowerVersions: ArraySlice<Dialect> {
        let index = Self.ietfVersions.firstIndex { $0.version == version }
        return index.map { Self.ietfVersions[($0 + 1)...] } ?? []
    }

    /// Returns the draft version that a response names or, if it is not supported, the next lower supported one; nil if the response names
    /// no version of a draft, or one that is older than all supported versions.
    package static func draft(namedIn headers: HTTPHeaders) -> Dialect? {
        guard let text = headers[interopHeader], case .integer(let version)? = StructuredFields.item(text) else { return nil }
        return ietfVersions.first { Int64($0.version).map { $0 <= version } ?? false }
    }
}
