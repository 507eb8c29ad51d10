import Foundation

/// The first message of a client, sent together with its request.
struct Greeting: Codable, Sendable {
    static let protocolName = "transferkit-control"
    static let version = 5

    var `protocol` = protocolName
    var versions = [version]
}

/// The server's response to the greeting: the protocol version to use, and a description of the owner.
struct GreetingResponse: Codable, Sendable {
    var `protocol` = Greeting.protocolName
    /// The version to use. Nil if the server supports none of the client's versions; the server then sends nothing else.
    var version: Int?
    var owner: QueueOwner
}
