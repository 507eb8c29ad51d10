/// What a transport promises of an upload that was interrupted.
public enum UploadResumption: Hashable, Sendable {
    /// It goes on from its last checkpoint, and there is one as soon as bytes were sent.
    case fromCheckpoint
    /// It starts over, cleanly: no checkpoint vouches for bytes, none are reported as confirmed before the end, and the other end takes nothing
    /// that was interrupted for the file. For servers that know no more of a file than whether they have it.
    case fromStart
}
