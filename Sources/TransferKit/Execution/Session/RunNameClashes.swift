import Foundation
import Locking
import TransferCore

/// Finds the files of one run that an endpoint would lose, because the remote names of two items of the session clash
/// (``RemoteNameClash``).
///
/// The queue rejects such items when they are added. However, endpoints at which files with the same name clash can be added to the account
/// later.
final class RunNameClashes: Sendable {
    /// The clashes of the session's names, by ``RemoteNameClash/name``; nil until the run first needs the clashes, and again after items were added.
    /// The clashes include items that are not expanded yet.
    private let clashes = Locked<(found: [NameKey: RemoteNameClash]?, additions: Int)>((nil, 0))

    /// Forgets the clashes, because items were added to the session. The next check finds the clashes again.
    func forget() { clashes.withLock { $0 = (nil, $0.additions + 1) } }

    /// Checks that an endpoint would not lose a file because of the file's name.
    ///
    /// - Throws: ``TransferError`` of the class ``FailureClass/unsupported``, because other endpoints may keep all files; a database error.
    func check(_ file: PendingFile, at endpoint: Endpoint, _ transport: any Transport, in context: RunContext) async throws {
        guard !file.kind.isDownload, file.uploadCapability == nil, let transport = transport as? any FileNaming else { return }
        let clashes = try await clashes(in: context)
        guard !clashes.isEmpty else { return }
        let name = Data(file.destination)
        guard
            let clash = clashes[NameKey(name)] ?? RemoteNames.folders(above: name).lazy.compactMap({ clashes[NameKey($0)] }).first
        else { return }
        let loss = transport.nameClash(
            AttemptOptions(context.options, uploadURL: nil, creationURL: file.creationCapability), at: endpoint)
        guard loss.losesFiles else { return }
        throw TransferError(
            .unsupported, .unsafeName,
            "\(clash), and at \(endpoint.location) \(clash.consequence(loss)). The file is not sent there. "
                + "\(clash.remedy), in a new session.")
    }

    private func clashes(in context: RunContext) async throws -> [NameKey: RemoteNameClash] {
        let (known, additions) = clashes.withLock { $0 }
        if let known { return known }
        let items = try await context.store.itemsWithClashingNames(of: context.key)
        var names = RemoteNames()
        var found: [NameKey: RemoteNameClash] = [:]
        // Add outer folders first, so that each item inside one of them is found.
        let folders = items.filter(\.isFolder).sorted { $0.name.count < $1.name.count }
        for item in folders + items.filter({ !$0.isFolder }) {
            // Does not block: `isFolder` comes from the database, so `add` does not inspect the path.
            if let clash = names.add(item.name, item.source, isFolder: item.isFolder) { found[NameKey(clash.name)] = clash }
        }
        // Items that were added during the read may be missing.
        clashes.withLock { [found] in if $0.additions == additions { $0.found = found } }
        return found
    }
}
