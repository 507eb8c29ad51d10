/// The type of a packet (draft-ietf-secsh-filexfer-02, section 3).
package enum PacketType: UInt8, Sendable {
    case initialize = 1
    case version = 2
    case open = 3
    case close = 4
    case read = 5
    case write = 6
    case lstat = 7
    case fstat = 8
    case setstat = 9
    case fsetstat = 10
    case opendir = 11
    case readdir = 12
    case remove = 13
    case mkdir = 14
    case rmdir = 15
    case realpath = 16
    case stat = 17
    case rename = 18
    case status = 101
    case handle = 102
    case data = 103
    case name = 104
    case attributes = 105
    case extended = 200
    case extendedReply = 201
}

/// Limits for packets from a server. A packet that exceeds a limit ends the SFTP session.
package enum PacketLimit {
    /// The maximum number of bytes of a packet without its length field: 256 KiB of content, as in OpenSSH, and 1 KiB for the framing.
    package static let packet = 256 * 1024 + 1024
    /// The maximum number of bytes of a file's name or path (PATH_MAX, limits.h).
    package static let name = 4 * 1024
    /// The maximum number of bytes of a handle (draft-ietf-secsh-filexfer-02, section 6.2).
    package static let handle = 256
    /// The maximum number of names in one response. OpenSSH sends at most 100.
    package static let names = 8 * 1024
}

/// The error for a packet that violates the protocol. No later packet can be decoded.
package struct ProtocolFault: Error, Hashable, Sendable, CustomStringConvertible {
    /// The problem, as a sentence.
    package let description: String

    init(_ description: String) {
        self.description = description
    }
}
