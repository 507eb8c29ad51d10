/// The protocol of a loopback server; see ``LoopbackOptions/dialect``.
///
/// Except for tus, each case is a version of the IETF's *Resumable Uploads for HTTP* (draft-ietf-httpbis-resumable-upload). A draft version is the
/// value of `Upload-Draft-Interop-Version`.
public enum LoopbackDialect: String, CaseIterable, Hashable, Sendable {
    /// tus 1.0.0.
    case tus
    /// Draft version 6.
    case draft6 = "6"
    /// Draft version 8, which URLSession in iOS 26 uses.
    case draft8 = "8"
    /// Draft version 9.
    case draft9 = "9"
    /// Draft version 10.
    case draft10 = "10"
    /// The final protocol, which has no version header.
    case final

    /// The draft version; nil for tus and the final protocol.
    var draftVersion: String? { self == .tus || self == .final ? nil : rawValue }

    /// Whether a 409 response explains the conflict, and contains the upload's offset.
    var explainsConflict: Bool { self != .draft6 && self != .draft8 }
}
