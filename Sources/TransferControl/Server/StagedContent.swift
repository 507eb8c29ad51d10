import Foundation
import SystemPackage
import TransferKit

/// The parts of one request that the queue's owner has received so far.
struct StagedContent {
    /// The maximum size of an encoded request, in bytes. Limits the memory that clients can occupy.
    static let standardLimit = 256 << 20

    private let limit: Int
    /// The client's working directory.
    private var workingFolder: FilePath = "/"
    private(set) var ids: [SessionID] = []
    private var sessions: [(head: SessionHead, items: [ItemRecord])] = []
    private var items: [ItemRecord] = []
    private var size = 0

    init(limit: Int) {
        self.limit = limit
    }

    /// Adds a part. If the request exceeds the limit, drops all parts; ``check()`` then throws an error.
    ///
    /// - Parameter size: The size of the part's message, in bytes.
    mutating func append(_ part: StagedPart, size: Int) {
        self.size += size
        guard self.size <= limit else {
            (ids, sessions, items) = ([], [], [])
            return
        }
        switch part {
        case .sessions(let unsplit): sessions += unsplit.map { ($0.head, $0.items) }
        case .session(let head): sessions.append((head, []))
        case .items(let records):
            if sessions.isEmpty { items += records } else { sessions[sessions.count - 1].items += records }
        case .bytes(let bytes):
            if sessions.isEmpty { Self.append(bytes, to: &items) } else { Self.append(bytes, to: &sessions[sessions.count - 1].items) }
        case .ids(let ids): self.ids += ids
        case .workingFolder(let path): workingFolder = FilePath(bytes: path)
        }
    }

    private static func append(_ bytes: Data, to items: inout [ItemRecord]) {
        guard !items.isEmpty else { return }
        items[items.count - 1].data = (items[items.count - 1].data ?? Data()) + bytes
    }

    func check() throws(QueueError) {
        guard size <= limit else {
            throw QueueError(
                .invalidRequest,
                "The request exceeds \(limit) bytes, the limit of the process that owns the queue. Nothing was changed. Split the request, or repeat it while no process owns the queue."
            )
        }
    }

    /// Returns the requests for the received sessions.
    ///
    /// - Parameter base: The folder to which relative paths refer; nil for the client's working directory.
    /// - Throws: The error of an invalid item.
    func requests(in base: FilePath?) throws -> [SessionRequest] {
        try sessions.map { try $0.head.request($0.items, in: base ?? workingFolder) }
    }

    func transferItems(in base: FilePath?) throws -> [TransferItem] { try items.map { try $0.item(in: base ?? workingFolder) } }
}
