import CurlEngine

/// The header names, media types and statuses of tus, or of one version of the IETF protocol *Resumable Uploads for HTTP*. Each version is a value
/// of this type.
///
/// A property is nil if the version lacks the feature. A version with an ``extensionsHeader`` has the headers of all extensions that this
/// module uses. The values of extension headers have the format of tus 1.0.0. If a version uses another format for a header's value, the
/// header's property is nil.
package struct Dialect: Sendable {
    /// The header with the version; nil if the version has no such header. All requests contain the header, except that it may be missing in
    /// the `OPTIONS` requests of tus. In tus, all responses must contain the header, too.
    package var versionHeader: String?
    /// The name of the version, for example `1.0.0`. If there is a ``versionHeader``, this name is the header's value.
    package var version: String
    /// The content type of `PATCH`.
    package var patchContentType: String
    /// The content type of a `POST` with content.
    package var creationContentType: String
    /// The header with the offset: the number of bytes that the server has.
    package var offsetHeader: String
    /// The header with the length of the whole upload, in bytes.
    package var lengthHeader: String

    /// The header with the file's name and other metadata, in a creation request.
    package var metadataHeader: String?
    /// The header that defers the length of a new upload, with the value `1` (extension *creation-defer-length*).
    package var deferredLengthHeader: String?
    /// The header for partial and final uploads (extension *concatenation*).
    package var concatenationHeader: String?
    /// The header, or trailer, with the checksum of a request's content (extension *checksum*).
    package var checksumHeader: String?
    /// The status for content that does not match its checksum.
    package var checksumMismatch: Int?
    /// The response header with the expiry of an upload (extension *expiration*).
    package var expiryHeader: String?

    /// The response header that lists the versions that the server supports.
    package var versionsHeader: String?
    /// The response header that lists the extensions that the server supports.
    package var extensionsHeader: String?
    /// The response header with the maximum size of uploads, in bytes.
    package var maximumSizeHeader: String?
    /// The response header that lists the checksum algorithms that the server supports.
    package var checksumAlgorithmsHeader: String?

    /// The terms of the IETF protocol; nil for tus.
    package var ietf: IETFTerms?

    /// tus 1.0.0 (https://tus.io/protocols/resumable-upload).
    package static let tus = Dialect(
        versionHeader: "Tus-Resumable", version: "1.0.0", patchContentType: "application/offset+octet-stream",
        creationContentType: "application/offset+octet-stream", offsetHeader: "Upload-Offset", lengthHeader: "Upload-Length",
        metadataHeader: "Upload-Metadata", deferredLengthHeader: "Upload-Defer-Length",
        concatenationHeader: "Upload-Concat", checksumHeader: "Upload-Checksum", checksumMismatch: 460, expiryHeader: "Upload-Expires",
        versionsHeader: "Tus-Version", extensionsHeader: "Tus-Extension", maximumSizeHeader: "Tus-Max-Size",
        checksumAlgorithmsHeader: "Tus-Checksum-Algorithm")

    /// Returns whether a response is from a server of this protocol and not, for example, a login page. For tus, the version must match; for
    /// the IETF protocol, any version is sufficient.
    func isDeclared(in headers: HTTPHeaders) -> Bool {
        ietf == nil ? headers[versionHeader] == version : IETFTerms.areDeclared(in: headers)
    }
}

extension HTTPHeaders {
    /// The first value of the header. Without a name, the value is nil and setting it has no effect.
    subscript(name: String?) -> String? {
        get { name.flatMap { self[$0] } }
        set { if let name { self[name] = newValue } }
    }
}
