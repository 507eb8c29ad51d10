import Foundation
import TransferKit

/// A message from a client that sends a stream. The first byte is the kind of frame; the content follows.
enum StreamFrame: Sendable {
    /// The next bytes.
    case bytes(Data)
    /// The stream is complete.
    case finish
    /// The stream can't be completed, for this reason.
    case fail(String)

    /// The maximum number of stream bytes in a frame.
    static let maximumSize = 1 << 20

    init(message: Data) throws(QueueError) {
        let content = Data(message.dropFirst())
        switch message.first {
        case 0: self = .bytes(content)
        case 1: self = .finish
        case 2: self = .fail(String(decoding: content, as: UTF8.self))
        default: throw QueueError(.invalidMessage, "The other process sent an invalid message.")
        }
    }

    var message: Data {
        switch self {
        case .bytes(let data): Data([0]) + data
        case .finish: Data([1])
        case .fail(let reason): Data([2]) + Data(reason.utf8)
        }
    }
}
