import Foundation
import TransferCore

/// What is known of one upload at the server.
struct RemoteUpload: Codable, Sendable {
    /// Its address, absolute; nil from before the creation is asked for until its answer arrived.
    var url: String?

    /// How many bytes of it the server confirmed.
    var confirmed: Int64?

    /// The offset at which the server answered a `PATCH` with 400, if it did: a second one there is final.
    var refusedOffset: Int64?

    /// When the server means to remove it, in seconds since 1970 by the server's clock (tus 1.0.0, "Upload-Expires").
    var expires: Int?
}

/// What a file's transfer needs to go on later.
struct TUSCheckpoint: Codable, Sendable {
    /// The upload of the whole file; where there are parts, the one that puts them together.
    var whole = RemoteUpload()

    init(whole: RemoteUpload = RemoteUpload()) {
        self.whole = whole
    }

    /// Reads a checkpoint; nil if it is not one of this transport.
    init?(_ checkpoint: Checkpoint) {
        guard let decoded = try? JSONDecoder().decode(TUSCheckpoint.self, from: checkpoint.data) else { return nil }
        self = decoded
    }

    init(from decoder: any Decoder) throws {
        whole = try RemoteUpload(from: decoder)
    }

    func encode(to encoder: any Encoder) throws {
        try whole.encode(to: encoder)
    }

    func encoded() throws -> Checkpoint {
        Checkpoint(data: try JSONEncoder().encode(self), confirmed: confirmed)
    }

    /// How many bytes of the file the server confirmed.
    var confirmed: Int64 { whole.confirmed ?? 0 }
}
