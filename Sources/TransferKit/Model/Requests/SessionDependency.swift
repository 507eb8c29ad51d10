/// A dependency on another session, which must be in the queue or in the same call of `enqueue`.
public enum SessionDependency: Hashable, Sendable, Codable {
    /// Waits until the session completes.
    case after(SessionID)
    /// Waits until the session completes, fails or is cancelled.
    case afterAny(SessionID)

    package init(_ session: SessionID, acceptsAnyEnd: Bool = false) {
        self = acceptsAnyEnd ? .afterAny(session) : .after(session)
    }

    /// The ID of the other session.
    package var session: SessionID {
        get {
            switch self {
            case .after(let session), .afterAny(let session): session
            }
        }
        set { self = SessionDependency(newValue, acceptsAnyEnd: acceptsAnyEnd) }
    }

    package var acceptsAnyEnd: Bool {
        if case .afterAny = self { true } else { false }
    }
}
