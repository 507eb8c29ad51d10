/// A condition for the start of a session: another session must complete or end first.
public struct SessionDependency: Hashable, Sendable, Codable {
    /// The other session.
    public var session: SessionID
    /// Whether any end of the other session satisfies the condition; otherwise it must complete.
    public var acceptsAnyEnd: Bool

    /// Creates a dependency.
    public init(_ session: SessionID, acceptsAnyEnd: Bool = false) {
        self.session = session
        self.acceptsAnyEnd = acceptsAnyEnd
    }

    /// Creates a dependency that is satisfied when the other session completes.
    public static func after(_ session: SessionID) -> SessionDependency {
        SessionDependency(session)
    }

    /// Creates a dependency that is satisfied when the other session completes, fails or is cancelled.
    public static func afterAny(_ session: SessionID) -> SessionDependency {
        SessionDependency(session, acceptsAnyEnd: true)
    }
}
