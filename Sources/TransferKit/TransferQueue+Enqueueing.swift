import Foundation
import SystemPackage
import TransferCore

extension TransferQueue {
    /// Adds a session. It is durable when the call returns.
    ///
    /// - Returns: A handle of the session; of the one that exists already if the request's deduplication key says so.
    /// - Throws: As ``enqueue(_:at:held:)-([SessionRequest],_,_)``.
    @discardableResult
    public nonisolated func enqueue(_ request: SessionRequest, at index: Int? = nil, held: Bool = false) async throws -> TransferSession {
        let sessions = try await enqueue([request], at: index, held: held)
        guard let session = sessions.first else { throw QueueError(.invalidRequest, "Nothing was enqueued.") }
        return session
    }

    /// Adds any number of sessions, in this order, in one transaction: all or none. They are durable when the call returns.
    ///
    /// The local files are looked at, not opened for longer: each must be a readable regular file.
    ///
    /// - Parameters:
    ///   - index: The index of the first one, at most the number of sessions; nil for the end of the queue.
    ///   - held: Whether they are set aside until they are released.
    /// - Returns: A handle of each session; of one that exists already for a request whose deduplication key says so.
    /// - Throws: ``QueueError`` with the code `noSuchAccount`, `invalidRequest`, `unreadableItems`, `indexOutOfRange`, `noSuchSession` or
    ///   `impossibleOrder` for dependencies; nothing is enqueued then.
    @discardableResult
    public nonisolated func enqueue(_ requests: [SessionRequest], at index: Int? = nil, held: Bool = false) async throws
        -> [TransferSession]
    {
        let drafts = try await DiskThread.run { () throws(QueueError) in try SessionDrafting.drafts(of: requests) }
        let answer = try await mailbox.send(.command(.enqueue(drafts, at: index, isHeld: held)))
        return answer.sessions.map { TransferSession(id: $0, queue: self) }
    }
}

/// Turns requests into drafts: checks the local files and settles names.
enum SessionDrafting {
    private static let namedProblems = 20

    static func drafts(of requests: [SessionRequest]) throws(QueueError) -> [SessionDraft] {
        var problems: [String] = []
        var drafts: [SessionDraft] = []
        let workingFolder = FilePath(FileManager.default.currentDirectoryPath)
        for request in requests {
            guard let first = request.items.first else {
                throw QueueError(.invalidRequest, "A session for the account \"\(request.account)\" has no items; give it at least one.")
            }
            guard request.direction == .upload else {
                throw QueueError(.invalidRequest, "This version can't download.")
            }
            var draft = SessionDraft(
                id: request.id, account: request.account, name: request.name ?? name(first, of: request.items.count),
                direction: request.direction, tags: request.tags, context: request.context, options: request.options,
                notBefore: request.notBefore, dependency: request.dependency, deduplicationKey: request.deduplicationKey)
            for item in request.items {
                do {
                    draft.items.append(try file(item, in: workingFolder))
                } catch {
                    problems.append(error.message)
                }
            }
            drafts.append(draft)
        }
        guard problems.isEmpty else { throw refusal(problems) }
        return drafts
    }

    private static func file(_ item: TransferItem, in workingFolder: FilePath) throws(TransferError) -> ItemDraft {
        guard !item.source.isEmpty else { throw TransferError(.sourceLost, .noSuchFile, "An empty path names no file.") }
        let path = item.source.isAbsolute ? item.source : workingFolder.pushing(item.source)
        let identity = try SourceIdentity(ofFileAt: path)
        do {
            try FileDescriptor.open(path, .readOnly, options: [.closeOnExec, .nonBlocking]).close()
        } catch {
            throw .sourceUnavailable(path, errno: (error as? Errno)?.rawValue ?? 0)
        }
        let destination: RemotePath
        if let given = item.destination {
            destination = given
        } else {
            destination = try RemotePath(bytes: path.lastComponent.map { FilePath(root: nil, components: $0).bytes } ?? [])
        }
        return ItemDraft(source: Data(path.bytes), destination: Data(destination.bytes), size: identity.size)
    }

    private static func name(_ first: TransferItem, of count: Int) -> String {
        let name = first.source.lastComponent?.string ?? first.source.string
        return count == 1 ? name : "\(name) and \(count - 1) more"
    }

    private static func refusal(_ problems: [String]) -> QueueError {
        var text = problems.prefix(namedProblems).joined(separator: "\n")
        if problems.count > namedProblems { text += "\n… and \(problems.count - namedProblems) more." }
        return QueueError(.unreadableItems, text)
    }
}
