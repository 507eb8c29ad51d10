import Foundation

/// What a client says first, together with its request.
struct Greeting: Codable, Sendable {
    static let protocolName = "transferkit-control"
    static let version = 1

    var `protocol` = protocolName
    /// The versions that it speaks.
    var versions = [version]
}

/// What a server answers to that: which version both speak from now on, and who it is.
struct GreetingAnswer: Codable, Sendable {
    var `protocol` = Greeting.protocolName
    /// Nil if it speaks none of those; nothing follows then.
    var version: Int?
    var owner: QueueOwner
}
