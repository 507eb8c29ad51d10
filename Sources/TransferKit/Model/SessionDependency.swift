/// That a session is not to start before another one.
public struct SessionDependency: Hashable, Sendable, Codable {
    /// The other session.
    public var session: SessionID
    /// Whether any end of the other one will do; otherwise it has to complete.
    public var acceptsAnyEnd: Bool

    /// Makes a dependency.
    public init(_ session: SessionID, acceptsAnyEnd: Bool = false) {
        self.session = session
        self.acceptsAnyEnd = acceptsAnyEnd
    }

    /// Satisfied when the other session completes.
    public static func after(_ session: SessionID) -> SessionDependency {
        SessionDependency(session)
    }

    /// Satisfied when the other session completes, fails or is cancelled.
    public static func afterAny(_ session: SessionID) -> SessionDependency {
        SessionDependency(session, acceptsAnyEnd: true)
    }
}
