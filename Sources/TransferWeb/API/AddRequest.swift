import Foundation
import SystemPackage
import TransferCore
import TransferKit

/// A request for a new session, like `transferq upload` and `transferq download`.
struct AddRequest {
    let request: SessionRequest
    let isDraft: Bool
    let isHeld: Bool
    let index: Int?
    private let paths: [String]
    /// The names of `transferq upload --symlinks`.
    private static let policies: [String: SymbolicLinkPolicy] = ["skip": .skip, "follow-files": .followFiles, "follow": .follow]

    /// Parses the body of a request.
    ///
    /// - Parameter key: The client's idempotency key, which becomes the deduplication key of the session; nil for none.
    /// - Throws: A ``Problem``, or a `TransferError` for an invalid remote name.
    init(_ members: JSONMembers, idempotencyKey key: String?) throws {
        var members = members
        guard let account = try members.string("account") else { throw Problem.invalid("\"account\" is missing.") }
        guard let paths = try members.strings("paths"), !paths.isEmpty else { throw Problem.invalid("\"paths\" is missing or empty.") }
        let direction = try members.string("direction") ?? TransferDirection.upload.rawValue
        guard let direction = TransferDirection(rawValue: direction) else {
            throw Problem.invalid("\"direction\" must be upload or download.")
        }
        guard key?.isEmpty != true else { throw Problem.invalid("The Idempotency-Key is empty.") }
        let (destination, name, tags) = (try members.string("to"), try members.string("name"), try members.strings("tags") ?? [])
        guard name?.isEmpty != true else { throw Problem.invalid("\"name\" is empty. Omit it to use the name of the first path.") }
        var options = SessionOptions()
        options.rateLimit = try members.integer("rateLimit", in: 1 ... .max)
        var (folder, items) = try Self.items(paths, direction, destination)
        if direction == .upload {
            let policy = try members.string("symlinks") ?? "skip"
            guard let links = Self.policies[policy] else {
                throw Problem.invalid("\"symlinks\" must be skip, follow-files or follow.")
            }
            for index in items.indices { items[index].symbolicLinks = links }
        }
        self.paths = paths
        var request =
            switch direction {
            case .upload: try SessionRequest.upload(items: items, to: account, name: name, tags: tags, options: options)
            case .download:
                try SessionRequest.download(items: items, from: account, to: folder, name: name, tags: tags, options: options)
            }
        request.context = members.json("context")
        request.notBefore = try members.date("notBefore")
        request.dependency = try members.session("after").map { .after($0) }
        request.deduplicationKey = try members.string("dedupe") ?? key
        // A repeated request must not add a session, even after the first session completed.
        request.deduplicatesCompleted = key != nil
        isDraft = try members.bool("draft")
        isHeld = try members.bool("hold")
        index = try members.integer("at", in: 0...Int64(Int32.max)).map { Int($0) }
        guard !isDraft || !isHeld && index == nil else { throw Problem.invalid("A draft has no position. Omit \"at\" and \"hold\".") }
        guard !isDraft || key == nil else {
            throw Problem.invalid("A draft can't have an Idempotency-Key. Omit the header, or add a held session with \"hold\" instead.")
        }
        try members.finish()
        self.request = request
    }

    /// Returns whether an existing session has the same account and direction and, for an upload, the same first item. If so, an earlier
    /// copy of this request may have added that session.
    func matches(_ id: SessionID, in queue: any ControllableQueue) async throws -> Bool {
        let session = try await queue.status(of: id)
        guard session.account == request.account, session.direction == request.direction else { return false }
        guard case .upload = session.direction, let path = paths.first.map({ FilePath($0) }),
            let source = try await queue.items(of: id, from: 0, limit: 1).first?.source
        else { return true }
        // If the path is a folder, the paths of its files start with the path of the folder. The queue may have resolved the links in the path.
        if source.starts(with: path) { return true }
        let resolved = await BlockingIO.run { URL(filePath: path.string).resolvingSymlinksInPath().path(percentEncoded: false) }
        return source.starts(with: FilePath(resolved))
    }

    /// Returns the items, and the local folder of a download. Local paths must be absolute, because a client does not know the server's
    /// working directory.
    private static func items(_ paths: [String], _ direction: TransferDirection, _ destination: String?) throws -> (
        FilePath, [TransferItem]
    ) {
        switch direction {
        case .download:
            guard let destination, destination.hasPrefix("/") else {
                throw Problem.invalid("\"to\" must be the absolute path of the local folder.")
            }
            return (FilePath(destination), try paths.map { .remote(try RemotePath($0)) })
        case .upload:
            return (
                "/",
                try paths.map { path in
                    guard path.hasPrefix("/"), !path.contains("\0") else {
                        throw Problem.invalid("\"\(path)\" is not an absolute path on the machine of the queue.")
                    }
                    guard let destination, !destination.isEmpty else { return TransferItem(FilePath(path)) }
                    let folder = destination.hasSuffix("/") ? destination : destination + "/"
                    return TransferItem(FilePath(path), as: try RemotePath(folder + (FilePath(path).lastComponent?.string ?? "")))
                }
            )
        }
    }
}
