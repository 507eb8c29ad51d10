public import Foundation

/// The expected start and end of a waiting session.
public struct SessionForecast: Hashable, Sendable, Codable {
    /// The session.
    public var id: SessionID
    /// The expected start; nil if it depends on something unknown, such as user action or the rate of another session.
    public var expectedStart: Date?
    /// The expected end; nil if it is unknown.
    public var expectedEnd: Date?
}
