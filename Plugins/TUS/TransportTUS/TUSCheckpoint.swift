import Foundation
import TransferCore

/// What an upload needs to go on later.
struct TUSCheckpoint: Codable {
    /// The upload's address at the server, absolute; nil from before the creation is asked for until its answer arrived.
    var url: String?

    /// The offset at which the server answered a `PATCH` with 400, if it did: a second one there is final.
    var refusedOffset: Int64?

    init(url: String? = nil, refusedOffset: Int64? = nil) {
        self.url = url
        self.refusedOffset = refusedOffset
    }

    /// Reads a checkpoint; nil if it is not one of this transport.
    init?(_ checkpoint: Checkpoint) {
        guard let decoded = try? JSONDecoder().decode(TUSCheckpoint.self, from: checkpoint.data) else { return nil }
        self = decoded
    }

    func encoded(confirmed: Int64) throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(self), confirmed: confirmed)
    }
}
