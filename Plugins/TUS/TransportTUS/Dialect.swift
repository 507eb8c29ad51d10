import CurlEngine

/// What one version of the protocol calls its things. All that is said on the wire in a version's own words is here, so that another version
/// is another value of this type.
struct Dialect: Sendable {
    /// The header that names the version, in each request but `OPTIONS` and in each answer.
    let versionHeader: String
    /// The version that is spoken.
    let version: String
    /// The type of the content of `PATCH`, and of a `POST` that brings content.
    let contentType: String
    /// The header with the number of bytes that the server has, or is taken to have.
    let offsetHeader: String
    /// The header with the number of bytes of the whole upload.
    let lengthHeader: String

    /// tus 1.0.0 (https://tus.io/protocols/resumable-upload).
    static let tus = Dialect(
        versionHeader: "Tus-Resumable", version: "1.0.0", contentType: "application/offset+octet-stream", offsetHeader: "Upload-Offset",
        lengthHeader: "Upload-Length")

    /// Whether an answer is one of a server that speaks this version: a login page is not.
    func isSpoken(in headers: HTTPHeaders) -> Bool { headers[versionHeader] == version }
}
