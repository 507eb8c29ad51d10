import Foundation
import SystemPackage
import TransferCore
import TransferKit

/// One part of a request. A request can be larger than a message, so it is split into parts that each fit into one message.
enum StagedPart: Codable, Sendable {
    /// Sessions with all of their items.
    case sessions([WholeSession])
    /// A session whose items follow.
    case session(SessionHead)
    /// Items of the last session, or of the request if there is no session.
    case items([ItemRecord])
    /// The next bytes of the last item, whose content is in memory.
    case bytes(Data)
    /// The IDs of a group of sessions.
    case ids([SessionID])
    /// The client's working directory, to which relative paths refer if the queue has no base folder.
    case workingFolder([UInt8])
}

/// A new session with all its items, small enough to share a message with other sessions.
struct WholeSession: Codable, Sendable {
    var head: SessionHead
    var items: [ItemRecord]

    /// An estimate of the size in a message, in bytes.
    var cost: Int { items.reduce(head.cost) { $0 + $1.cost } }
}

/// A new session without its items.
struct SessionHead: Codable, Sendable {
    var id: SessionID
    var account: String
    var direction: TransferDirection
    var folder: [UInt8]?
    var name: String?
    var tags: [String]
    var context: Data?
    var options: SessionOptions
    var notBefore: Date?
    var dependency: SessionDependency?
    var deduplicationKey: String?
    var deduplicatesCompleted: Bool

    /// An estimate of the size in a message, in bytes.
    var cost: Int {
        var texts = tags + [account, name ?? "", deduplicationKey ?? ""]
        texts.append(options.creationURL ?? "")
        for values in [options.metadata, options.headers, options.settings] { texts += Array(values.keys) + Array(values.values) }
        // JSON encodes a byte of a string in up to six bytes, and a byte in an array in up to four.
        return 4_096 + texts.reduce(0) { $0 + 6 * $1.utf8.count + 8 } + ((context?.count ?? 0) + (folder?.count ?? 0)) * 4
    }

    init(_ request: SessionRequest) {
        id = request.id
        account = request.account
        direction = request.direction
        folder = request.folder?.bytes
        name = request.name
        tags = request.tags
        context = request.context
        options = request.options
        notBefore = request.notBefore
        dependency = request.dependency
        deduplicationKey = request.deduplicationKey
        deduplicatesCompleted = request.deduplicatesCompleted
    }

    /// - Parameter base: The folder to which relative paths refer.
    func request(_ items: [ItemRecord], in base: FilePath) throws -> SessionRequest {
        var request = try SessionRequest.upload(
            items: try items.map { try $0.item(in: base) }, to: account, name: name, tags: tags, options: options)
        request.id = id
        request.direction = direction
        request.folder = folder.map { base.resolving(FilePath(bytes: $0)) }
        request.context = context
        request.notBefore = notBefore
        request.dependency = dependency
        request.deduplicationKey = deduplicationKey
        request.deduplicatesCompleted = deduplicatesCompleted
        return request
    }
}

struct ItemRecord: Codable, Sendable {
    private enum Kind: String, Codable {
        case path
        case data
        case form
        case remote
        case remoteFolder
    }

    /// The maximum number of content bytes in one record. The remaining bytes follow in other parts.
    static let contentSize = 1 << 19

    private var kind: Kind
    /// The path of a local item, or the local name of a remote file or folder.
    private var path: Data?
    var data: Data?
    private var destination: Data?
    private var symbolicLinks: SymbolicLinkPolicy?
    private var uploadURL: String?
    private var creationURL: String?
    private var keepsCopy: Bool?
    private var parts: [FormPartRecord]?

    init(_ item: TransferItem) throws(QueueError) {
        do throws(TransferError) {
            if let name = item.invalidDestination { _ = try RemotePath(name) }
        } catch {
            throw QueueError(.invalidRequest, error.message)
        }
        destination = item.destination.map { Data($0.bytes) }
        uploadURL = item.uploadURL
        creationURL = item.creationURL
        keepsCopy = item.keepsCopy ? true : nil
        switch item.content {
        case .path(let path):
            kind = .path
            self.path = Data(path.bytes)
            symbolicLinks = item.symbolicLinks
        case .data(let data):
            kind = .data
            self.data = data
        case .form(let parts):
            kind = .form
            self.parts = parts.map { FormPartRecord($0) }
            data = item.data
        case .remote(let name):
            kind = .remote
            path = name.map { Data($0.bytes) }
        case .remoteFolder(let name):
            kind = .remoteFolder
            path = name.map { Data($0.bytes) }
            symbolicLinks = item.symbolicLinks
        case .stream:
            throw QueueError(
                .invalidRequest,
                "\(item.destination?.description ?? "An item") is a stream, which only the process that owns the queue can produce. Write it to a file, or open the queue in this process."
            )
        }
    }

    /// An estimate of the size in a message, in bytes.
    var cost: Int {
        // JSON encodes a byte of a string in up to six bytes.
        let urls = 6 * ((uploadURL?.utf8.count ?? 0) + (creationURL?.utf8.count ?? 0))
        let binary = ((path?.count ?? 0) + (data?.count ?? 0) + (destination?.count ?? 0)) * 4 / 3
        return (parts ?? []).reduce(128 + urls + binary) { $0 + $1.cost }
    }

    /// - Parameter base: The folder to which a relative path refers.
    func item(in base: FilePath) throws -> TransferItem {
        let name = try destination.map { try kind == .remoteFolder ? RemotePath.folder(bytes: $0) : RemotePath(bytes: $0) }
        var item: TransferItem
        switch (kind, path, name) {
        case (.path, let path?, let name):
            item = TransferItem(base.resolving(FilePath(bytes: path)), as: name, symbolicLinks: symbolicLinks ?? .follow)
        case (.data, _, let name?): item = .data(data ?? Data(), as: name)
        case (.form, _, let name): item = .form(try FormPartRecord.parts(parts ?? [], with: data ?? Data(), in: base), as: name)
        case (.remote, let path, let name?): item = .remote(name, as: path.map { FilePath(bytes: $0) })
        case (.remoteFolder, let path, let name?):
            item = .remoteFolder(name, as: path.map { FilePath(bytes: $0) }, symbolicLinks: symbolicLinks ?? .skip)
        case (.path, nil, _), (.data, _, nil), (.remote, _, nil), (.remoteFolder, _, nil):
            throw QueueError(.invalidMessage, "The path or name of a new item is missing.")
        }
        item.uploadURL = uploadURL
        item.creationURL = creationURL
        item.keepsCopy = keepsCopy ?? false
        return item
    }
}

extension FilePath {
    /// Resolves a relative path against this folder. Returns an absolute or empty path unchanged.
    func resolving(_ path: FilePath) -> FilePath {
        path.isEmpty ? path : pushing(path)
    }
}
