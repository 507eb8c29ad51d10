import Foundation
import Locking
import SystemPackage
import TransferCore
import TransferKit

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A storage folder with one session. Tests expand the session's folders in the same way as a run.
struct ItemFixture {
    let folder: TemporaryFolder
    let tree: FolderTree

    init() throws {
        folder = try TemporaryFolder()
        tree = try FolderTree(folder.path.appending("tree"))
    }

    var storage: FilePath { folder.path.appending("store") }

    func open(base: FilePath? = nil) async throws -> QueueStore {
        try await QueueStore.open(.folder(storage, base: base), clock: .system)
    }

    /// Opens the storage folder, and adds a session that has the key 1 and the given items.
    func open(_ items: [TransferItem]) async throws -> QueueStore {
        let store = try await open()
        let draft = SessionDraft(id: SessionID(), account: "a", name: "test", items: try await store.drafts(of: items))
        try await store.commit([
            .saveAccount(1, Account("a", endpoints: [Endpoint(transport: "memory", address: "memory://a/")])),
            .session(1, rank: 0, draft),
        ])
        return store
    }

    /// Expands the session's folders. Throws `CancellationError` instead of storing a step for which `refuses` returns true.
    @discardableResult
    func expand(
        _ store: QueueStore, refusing refuses: @escaping @Sendable (ExpansionStep) -> Bool = { _ in false }, fault: FolderFault? = nil,
        maximumNameBytes: Int = 32 << 20
    ) async throws -> ManifestTotals {
        let growth = Locked(ManifestTotals())
        try await FolderExpansion(of: 1, in: store, fault: fault, maximumNameBytes: maximumNameBytes) { step in
            guard !refuses(step) else { throw CancellationError() }
            try await store.commit([.expansion(1, step)])
        } grow: { more in
            growth.withLock { $0 += more }
        }.run()
        return growth.withLock { $0 }
    }

    /// Reads all items of the session, page by page.
    func items(_ store: QueueStore, page: Int = 7) async throws -> [ItemStatus] {
        var items: [ItemStatus] = []
        while true {
            let next = try await store.items(of: 1, from: items.last.map { $0.position + 1 } ?? 0, limit: page)
            guard !next.isEmpty else { return items }
            items += next
        }
    }

    func statistics(_ store: QueueStore) async throws -> SessionStatistics? {
        try await store.sessions([1]).first?.status.statistics
    }
}

extension ItemFixture {
    /// Runs a closure while the tree contains folders that are nested so deeply that their path is too long (PATH_MAX, limits.h(0p)).
    func withDeepFolder(_ name: String, _ body: () async throws -> Void) async throws {
        var open = [try FileDescriptor.open(tree.root, .readOnly, options: [.directory])]
        defer {
            // Removes the folders from the bottom up, because no path can name the innermost ones.
            open.removeLast().closeQuietly()
            while let parent = open.popLast() {
                _ = unsafe unlinkat(parent.rawValue, name, AT_REMOVEDIR)
                parent.closeQuietly()
            }
        }
        for _ in 0..<20 {
            guard let parent = open.last, unsafe mkdirat(parent.rawValue, name, 0o700) == 0 else { throw Errno(rawValue: errno) }
            let child = unsafe openat(parent.rawValue, name, O_RDONLY | O_DIRECTORY)
            guard child >= 0 else { throw Errno(rawValue: errno) }
            open.append(FileDescriptor(rawValue: child))
        }
        try await body()
    }
}

extension FileDescriptor {
    fileprivate func closeQuietly() {
        try? close()
    }
}
