/// An extension of the tus protocol (tus 1.0.0, "Protocol Extensions"), for ``TUSOptions/extensions``.
public enum TUSExtension: String, CaseIterable, Hashable, Sendable {
    /// The creation of uploads. The transport always uses this extension.
    case creation
    /// The creation of an upload together with its content, which saves a request for each small file.
    case creationWithUpload = "creation-with-upload"
    /// The creation of an upload before its length is known, for streams.
    case creationDeferLength = "creation-defer-length"
    /// The removal of unfinished uploads. Without this extension, they remain until they expire.
    case termination
    /// The expiry of unfinished uploads. The server decides when an upload expires, and reports the date, so listing this extension has no effect.
    case expiration
    /// Checksums in a header, for sessions with the verification `checksum`.
    case checksum
    /// Checksums in a trailer, so that the content is read only once.
    case checksumTrailer = "checksum-trailer"
    /// The concatenation of segments that are sent in parallel.
    case concatenation
    /// A concatenation that is requested before its segments are complete.
    case concatenationUnfinished = "concatenation-unfinished"
}
