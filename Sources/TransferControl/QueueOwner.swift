public import Foundation

/// The process that owns a queue, as it says itself.
public struct QueueOwner: Hashable, Sendable, Codable {
    /// What kind of program it is. The list is open.
    public struct Role: RawRepresentable, Hashable, Sendable, Codable {
        /// The name, in lower camel case.
        public let rawValue: String

        /// Makes a role of a name.
        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// An app that does something else too.
        public static let application = Role(rawValue: "application")
        /// `transferq run`.
        public static let run = Role(rawValue: "run")
        /// `transferq agent`: ends when it is asked to.
        public static let agent = Role(rawValue: "agent")
    }

    /// Its number.
    public var processID: Int32
    /// What kind of program it is.
    public var role: Role
    /// When it opened its socket.
    public var since: Date
}
