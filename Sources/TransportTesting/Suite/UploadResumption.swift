/// The behaviour that a transport promises for interrupted uploads.
public enum UploadResumption: Hashable, Sendable {
    /// The upload resumes from its last checkpoint. An attempt has saved a checkpoint if it is cancelled after the first byte, or if its connection
    /// breaks after more than one byte.
    case fromCheckpoint
    /// The upload restarts from byte 0. No checkpoint covers bytes, no bytes are reported as confirmed before the end, and the other end never
    /// considers interrupted content complete. Intended for servers that support only complete files.
    case fromStart
}
