import TransferCore

/// What a server was asked since it started, for tests to assert on. Served as JSON at `/statistics`.
public struct LoopbackStatistics: Hashable, Sendable, Codable {
    /// How many requests came, by method; those for the statistics are not counted.
    public var requests: [String: Int] = [:]

    /// How many bytes of body were received and stored.
    public var bytesStored: Int64 = 0

    /// How many bytes of body were received and thrown away, as they belonged to a refused request.
    public var bytesDiscarded: Int64 = 0

    /// The uploads that requests were about, in the order of their first one.
    public var uploads: [Upload] = []

    /// One upload and the requests about it.
    public struct Upload: Hashable, Sendable, Codable {
        /// The last component of the upload's URL.
        public var id: String
        /// The `filename` in the upload's metadata.
        public var filename: String?
        /// The announced size in bytes.
        public var length: Int64
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
        /// For a PATCH, where its bytes were said to begin; for a HEAD, the offset in the answer; for a POST, 0.
        public var offset: Int64?
        /// How many bytes of its body were stored.
        public var received: Int64 = 0
        /// The status of the answer; nil while there is none or if the connection was cut.
        public var status: Int?
    }
}

/// Where connections write down what happens.
final class StatisticsRecorder: Sendable {
    private let statistics = Locked(LoopbackStatistics())

    var current: LoopbackStatistics { statistics.withLock { $0 } }

    func count(_ method: String) {
        statistics.withLock { $0.requests[method, default: 0] += 1 }
    }

    func discarded(_ bytes: Int64) {
        statistics.withLock { $0.bytesDiscarded += bytes }
    }

    /// Notes the begin of a request about an upload; returns where to note the rest.
    func begin(_ method: String, offset: Int64?, for upload: Upload) -> Entry {
        statistics.withLock { statistics in
            let index = statistics.indexOfUpload(upload)
            statistics.uploads[index].requests.append(.init(method: method, offset: offset))
            return Entry(upload: index, request: statistics.uploads[index].requests.count - 1)
        }
    }

    func stored(_ bytes: Int, of entry: Entry, total: Int64) {
        statistics.withLock { statistics in
            statistics.bytesStored += Int64(bytes)
            statistics.uploads[entry.upload].requests[entry.request].received += Int64(bytes)
            statistics.uploads[entry.upload].offset = total
            statistics.uploads[entry.upload].isComplete = total == statistics.uploads[entry.upload].length
        }
    }

    func answered(_ status: Int, to entry: Entry) {
        statistics.withLock { $0.uploads[entry.upload].requests[entry.request].status = status }
    }

    /// A place in the statistics.
    struct Entry: Sendable {
        let upload: Int
        let request: Int
    }
}

extension LoopbackStatistics {
    fileprivate mutating func indexOfUpload(_ upload: TUSLoopback.Upload) -> Int {
        if let index = uploads.lastIndex(where: { $0.id == upload.id }) { return index }
        uploads.append(
            Upload(
                id: upload.id, filename: upload.record.metadata["filename"], length: upload.record.length, offset: upload.offset,
                isComplete: upload.isComplete))
        return uploads.count - 1
    }
}
