public import Foundation

/// The description of the process that owns a queue.
public struct QueueOwner: Hashable, Sendable, Codable {
    /// A kind of program. Programs can define more roles.
    public struct Role: RawRepresentable, Hashable, Sendable, Codable {
        /// The name, in lower camel case.
        public let rawValue: String

        /// Creates a role from its name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// Any app other than `transferq`.
        public static let application = Role(rawValue: "application")
        /// `transferq run`.
        public static let run = Role(rawValue: "run")
        /// `transferq agent`, which exits on request.
        public static let agent = Role(rawValue: "agent")
        /// A member of a fleet: one of several processes that run a queue in a PostgreSQL database. A member exits on request, like an
        /// agent. Only the fleet can change the member's queue.
        public static let member = Role(rawValue: "member")

        /// Whether the program runs the queue in the background, and exits on request.
        package var isAgent: Bool { self == .agent || self == .member }
    }

    /// The process ID.
    public var processID: Int32
    /// The kind of program.
    public var role: Role
    /// The time at which the process opened its socket.
    public var since: Date
}
