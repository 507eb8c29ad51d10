/// The promise of a transport for interrupted uploads.
public enum UploadResumption: Hashable, Sendable {
    /// The upload resumes from its last checkpoint. There is one as soon as bytes were sent.
    case fromCheckpoint
    /// The upload restarts cleanly: no checkpoint covers bytes, none are reported as confirmed before the end, and the other end never considers
    /// interrupted content complete. For servers that only know complete files.
    case fromStart
}
