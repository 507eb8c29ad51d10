/// An optional tus 1.0.0 extension of the server; see ``LoopbackOptions/extensions``.
///
/// *creation* is always supported, because uploads are impossible without it. *expiration* is supported if uploads have a lifetime.
public enum LoopbackExtension: String, CaseIterable, Hashable, Sendable {
    /// A creation request can contain content. Without the extension, the server ignores the content, and the creation succeeds.
    case creationWithUpload = "creation-with-upload"
    /// An upload can be created before its length is known.
    case creationDeferLength = "creation-defer-length"
    /// Clients can remove uploads.
    case termination
    /// The server compares content with the checksum in `Upload-Checksum`. Without the extension, the server ignores the header.
    case checksum
    /// The checksum can follow the content as a trailer. Requires ``checksum``.
    case checksumTrailer = "checksum-trailer"
    /// Partial uploads can be concatenated into a final upload.
    case concatenation
    /// A final upload can be created before its partial uploads are complete. Requires ``concatenation``.
    case concatenationUnfinished = "concatenation-unfinished"
}
