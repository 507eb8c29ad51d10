import CurlEngine

/// What one version of the protocol calls its things. All headers, types and statuses of a version's own are here, so that another version is
/// another value of this type.
///
/// A version has no word, nil, for what it does not have; one with an ``extensionsHeader`` has the words of all extensions that are used here.
/// What is said inside a header of an extension has tus 1.0.0's form in all versions: one with another form does not have that header.
package struct Dialect: Sendable {
    /// The header that names the version, in each request but `OPTIONS` and in each answer.
    package var versionHeader: String
    /// The version that is spoken.
    package var version: String
    /// The type of the content of `PATCH`.
    package var patchContentType: String
    /// The type of the content of a `POST` that brings some.
    package var creationContentType: String
    /// The header with the number of bytes that the server has, or is taken to have.
    package var offsetHeader: String
    /// The header with the number of bytes of the whole upload.
    package var lengthHeader: String

    /// The header by which a creation says what the file is called, and more about it.
    package var metadataHeader: String?
    /// The header by which a creation says, with `1`, that the length follows (extension *creation-defer-length*).
    package var deferredLengthHeader: String?
    /// The header that makes an upload a part, or puts parts together (extension *concatenation*).
    package var concatenationHeader: String?
    /// The header, or trailer, with the checksum of what a request brings (extension *checksum*).
    package var checksumHeader: String?
    /// The status of a request whose content has another checksum than it says.
    package var checksumMismatch: Int?
    /// The header of an answer that says when the server means to remove an upload (extension *expiration*).
    package var expiryHeader: String?

    /// The header of an answer with the versions that the server speaks.
    package var versionsHeader: String?
    /// The header of an answer with the extensions that the server has.
    package var extensionsHeader: String?
    /// The header of an answer with the size of the largest upload that the server takes.
    package var maximumSizeHeader: String?
    /// The header of an answer with the checksums that the server can compute.
    package var checksumAlgorithmsHeader: String?

    /// tus 1.0.0 (https://tus.io/protocols/resumable-upload).
    package static let tus = Dialect(
        versionHeader: "Tus-Resumable", version: "1.0.0", patchContentType: "application/offset+octet-stream",
        creationContentType: "application/offset+octet-stream", offsetHeader: "Upload-Offset", lengthHeader: "Upload-Length",
        metadataHeader: "Upload-Metadata", deferredLengthHeader: "Upload-Defer-Length",
        concatenationHeader: "Upload-Concat", checksumHeader: "Upload-Checksum", checksumMismatch: 460, expiryHeader: "Upload-Expires",
        versionsHeader: "Tus-Version", extensionsHeader: "Tus-Extension", maximumSizeHeader: "Tus-Max-Size",
        checksumAlgorithmsHeader: "Tus-Checksum-Algorithm")

    /// Whether an answer is one of a server that speaks this version: a login page is not.
    func isSpoken(in headers: HTTPHeaders) -> Bool { headers[versionHeader] == version }
}

extension HTTPHeaders {
    /// The first value of a name that a dialect may not have; then there is none, and setting it changes nothing.
    subscript(name: String?) -> String? {
        get { name.flatMap { self[$0] } }
        set { if let name { self[name] = newValue } }
    }
}
