public import Foundation

/// The expected start and end of a waiting session. See ``TransferQueue/forecast()`` for the assumptions.
public struct SessionForecast: Hashable, Sendable, Codable {
    /// The session's ID.
    public var id: SessionID
    /// The expected start; nil if unknown, for example if the start depends on the user, or on a session whose rate is unknown.
    public var expectedStart: Date?
    /// The expected end; nil if it is unknown.
    public var expectedEnd: Date?
}
