public import Foundation

/// The expected start and end of a waiting session.
public struct SessionForecast: Hashable, Sendable, Codable {
    /// The session's ID.
    public var id: SessionID
    /// The expected start; nil if it can't be predicted, for example because it depends on the user or on another session's unknown rate.
    public var expectedStart: Date?
    /// The expected end; nil if it is unknown.
    public var expectedEnd: Date?
}
