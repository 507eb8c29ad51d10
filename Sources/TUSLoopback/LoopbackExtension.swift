/// An extension of tus 1.0.0 that a server may lack; see ``LoopbackOptions/extensions``.
///
/// *creation* is always there, as nothing can be uploaded without it, and *expiration* is there if uploads have a lifetime.
public enum LoopbackExtension: String, CaseIterable, Hashable, Sendable {
    /// Content may come with the creation. Without it, such content is not taken, and the creation succeeds.
    case creationWithUpload = "creation-with-upload"
    /// An upload may be made before its length is known.
    case creationDeferLength = "creation-defer-length"
    /// Uploads can be deleted.
    case termination
    /// Content is compared with a checksum in `Upload-Checksum`. Without it, that header is ignored.
    case checksum
    /// The checksum may come behind the content. Only together with ``checksum``.
    case checksumTrailer = "checksum-trailer"
    /// Uploads can be put together of others.
    case concatenation
    /// They may be put together before the others are complete. Only together with ``concatenation``.
    case concatenationUnfinished = "concatenation-unfinished"
}
