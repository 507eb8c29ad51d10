import Locking
import TransferCore

/// The requests to a server since its creation, for assertions in tests. The server returns this value as JSON at `/statistics`.
public struct LoopbackStatistics: Hashable, Sendable, Codable {
    /// The number of requests by method, except those for `/statistics` and those whose host is not a loopback host.
    public var requests: [String: Int] = [:]

    /// The number of body bytes that the server received and kept.
    public var bytesStored: Int64 = 0

    /// The number of body bytes that the server received but did not keep.
    public var bytesDiscarded: Int64 = 0

    /// The number of content bytes sent to clients.
    public var bytesSent: Int64 = 0

    /// The uploads, in the order of their first request.
    public var uploads: [Upload] = []

    /// An upload and its requests.
    public struct Upload: Hashable, Sendable, Codable {
        /// The last component of the upload's URL.
        public var id: String
        /// The `filename` in the upload's metadata.
        public var filename: String?
        /// The announced size in bytes; nil while it is unknown.
        public var length: Int64?
        /// The number of stored bytes.
        public var offset: Int64
        /// Whether the upload is complete.
        public var isComplete: Bool
        /// The requests in the order of arrival.
        public var requests: [Request] = []
    }

    /// A request for an upload.
    public struct Request: Hashable, Sendable, Codable {
        /// The HTTP method, such as `PATCH`. With the IETF protocol, `POST` for every request that creates an upload.
        public var method: String
        /// The offset in bytes: the `Upload-Offset` of a PATCH, the upload's offset for a HEAD, the first sent byte of a GET, or 0 for a
        /// POST. Nil for other methods, for a PATCH without a valid offset, and for a GET whose range is beyond the upload.
        public var offset: Int64?
        /// The number of body bytes that were stored.
        public var received: Int64 = 0
        /// The number of content bytes that were sent.
        public var sent: Int64 = 0
        /// The status of the response; nil before the response, or if the connection was closed without one.
        public var status: Int?
    }
}

final class StatisticsRecorder: Sendable {
    private let state = Locked(State())

    private struct State {
        var statistics = LoopbackStatistics()
        /// The index of each upload in the statistics, by ID.
        var indices: [String: Int] = [:]
    }

    var current: LoopbackStatistics { state.withLock { $0.statistics } }

    func count(_ method: String) {
        state.withLock { $0.statistics.requests[method, default: 0] += 1 }
    }

    func discarded(_ bytes: Int64) {
        state.withLock { $0.statistics.bytesDiscarded += bytes }
    }

    func sent(_ bytes: Int, of position: RequestPosition) {
        state.withLock { state in
            state.statistics.bytesSent += Int64(bytes)
            state.statistics.uploads[position.upload].requests[position.request].sent += Int64(bytes)
        }
    }

    /// Adds a request for an upload. Returns the position of the request in the statistics, for later updates.
    func begin(_ method: String, offset: Int64?, for upload: Upload) -> RequestPosition {
        state.withLock { state in
            let index = state.indices[upload.id] ?? state.statistics.uploads.count
            if index == state.statistics.uploads.count {
                state.indices[upload.id] = index
                state.statistics.uploads.append(LoopbackStatistics.Upload(upload))
            }
            state.statistics.uploads[index].requests.append(.init(method: method, offset: offset))
            return RequestPosition(upload: index, request: state.statistics.uploads[index].requests.count - 1)
        }
    }

    func stored(_ bytes: Int, of position: RequestPosition) {
        state.withLock { state in
            state.statistics.bytesStored += Int64(bytes)
            state.statistics.uploads[position.upload].requests[position.request].received += Int64(bytes)
        }
    }

    /// Moves the stored bytes of a request to the discarded bytes.
    func discardedStoredBytes(of position: RequestPosition) {
        state.withLock { state in
            let bytes = state.statistics.uploads[position.upload].requests[position.request].received
            state.statistics.bytesStored -= bytes
            state.statistics.bytesDiscarded += bytes
            state.statistics.uploads[position.upload].requests[position.request].received = 0
        }
    }

    func updated(_ upload: Upload) {
        let (length, offset, isComplete) = (upload.record.length, upload.offset, upload.isComplete)
        state.withLock { state in
            guard let index = state.indices[upload.id] else { return }
            state.statistics.uploads[index].length = length
            state.statistics.uploads[index].offset = offset
            state.statistics.uploads[index].isComplete = isComplete
        }
    }

    func responded(_ status: Int, to position: RequestPosition) {
        state.withLock { $0.statistics.uploads[position.upload].requests[position.request].status = status }
    }

    struct RequestPosition: Sendable {
        let upload: Int
        let request: Int
    }
}

extension LoopbackStatistics.Upload {
    fileprivate init(_ upload: Upload) {
        self.init(
            id: upload.id, filename: upload.record.metadata["filename"], length: upload.record.length, offset: upload.offset,
            isComplete: upload.isComplete)
    }
}
