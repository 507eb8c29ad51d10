import Locking
import TransferCore

/// What a server was asked since it started, for tests to assert on. Served as JSON at `/statistics`.
public struct LoopbackStatistics: Hashable, Sendable, Codable {
    /// How many requests came, by method; those for the statistics are not counted.
    public var requests: [String: Int] = [:]

    /// How many bytes of body were received and stored.
    public var bytesStored: Int64 = 0

    /// How many bytes of body were received and thrown away, as they belonged to a refused request or their checksum was another.
    public var bytesDiscarded: Int64 = 0

    /// How many bytes of content were given back.
    public var bytesSent: Int64 = 0

    /// The uploads that requests were about, in the order of their first one.
    public var uploads: [Upload] = []

    /// One upload and the requests about it.
    public struct Upload: Hashable, Sendable, Codable {
        /// The last component of the upload's URL.
        public var id: String
        /// The `filename` in the upload's metadata.
        public var filename: String?
        /// The announced size in bytes; nil as long as it is not known.
        public var length: Int64?
        /// How many bytes are stored.
        public var offset: Int64
        /// Whether all bytes are stored.
        public var isComplete: Bool
        /// The requests in the order in which they came.
        public var requests: [Request] = []
    }

    /// One request about an upload.
    public struct Request: Hashable, Sendable, Codable {
        /// The method.
        public var method: String
        /// For a PATCH, where its bytes were said to begin; for a HEAD, the offset in the answer; for a POST, 0; for a GET, the first byte that
        /// was given back.
        public var offset: Int64?
        /// How many bytes of its body were stored.
        public var received: Int64 = 0
        /// How many bytes of content were given back.
        public var sent: Int64 = 0
        /// The status of the answer; nil while there is none or if the connection was cut.
        public var status: Int?
    }
}

/// Where connections write down what happens.
final class StatisticsRecorder: Sendable {
    private let state = Locked(State())

    private struct State {
        var statistics = LoopbackStatistics()
        /// Where each upload is in the statistics, by its ID.
        var indices: [String: Int] = [:]
    }

    var current: LoopbackStatistics { state.withLock { $0.statistics } }

    func count(_ method: String) {
        state.withLock { $0.statistics.requests[method, default: 0] += 1 }
    }

    func discarded(_ bytes: Int64) {
        state.withLock { $0.statistics.bytesDiscarded += bytes }
    }

    func sent(_ bytes: Int, of entry: Entry) {
        state.withLock { state in
            state.statistics.bytesSent += Int64(bytes)
            state.statistics.uploads[entry.upload].requests[entry.request].sent += Int64(bytes)
        }
    }

    /// Notes the begin of a request about an upload; returns where to note the rest.
    func begin(_ method: String, offset: Int64?, for upload: Upload) -> Entry {
        state.withLock { state in
            let index = state.indices[upload.id] ?? state.statistics.uploads.count
            if index == state.statistics.uploads.count {
                state.indices[upload.id] = index
                state.statistics.uploads.append(LoopbackStatistics.Upload(upload))
            }
            state.statistics.uploads[index].requests.append(.init(method: method, offset: offset))
            return Entry(upload: index, request: state.statistics.uploads[index].requests.count - 1)
        }
    }

    func stored(_ bytes: Int, of entry: Entry) {
        state.withLock { state in
            state.statistics.bytesStored += Int64(bytes)
            state.statistics.uploads[entry.upload].requests[entry.request].received += Int64(bytes)
        }
    }

    /// Notes that what a request brought was stored and then taken away again.
    func takenAway(of entry: Entry) {
        state.withLock { state in
            let bytes = state.statistics.uploads[entry.upload].requests[entry.request].received
            state.statistics.bytesStored -= bytes
            state.statistics.bytesDiscarded += bytes
            state.statistics.uploads[entry.upload].requests[entry.request].received = 0
        }
    }

    /// Notes where an upload stands.
    func moved(_ upload: Upload) {
        let (length, offset, isComplete) = (upload.record.length, upload.offset, upload.isComplete)
        state.withLock { state in
            guard let index = state.indices[upload.id] else { return }
            state.statistics.uploads[index].length = length
            state.statistics.uploads[index].offset = offset
            state.statistics.uploads[index].isComplete = isComplete
        }
    }

    func answered(_ status: Int, to entry: Entry) {
        state.withLock { $0.statistics.uploads[entry.upload].requests[entry.request].status = status }
    }

    /// A place in the statistics.
    struct Entry: Sendable {
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
