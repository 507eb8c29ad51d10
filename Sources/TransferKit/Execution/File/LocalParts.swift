import Foundation
import Locking
package import SystemPackage
package import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The unfinished part files of downloads on this machine. They are removed like the remote content of uploads: by rows of the discard
/// outbox, which survive restarts.
///
/// Before the first attempt at an endpoint, a file gets an empty checkpoint at an address of its own that names the future part file. So
/// the store always knows which part files may exist on the disk.
package struct LocalParts: Sendable {
    private let sources: SourceFolders
    private let sync: @Sendable (FileDescriptor) -> CInt
    /// The download folders with a removal in progress.
    private let busy = Locked<Set<FilePath>>([])

    /// - Parameter sync: Makes removals in a folder durable, by default with fsync(2); tests inject it.
    package init(sources: SourceFolders, sync: @escaping @Sendable (FileDescriptor) -> CInt = { fsync($0.rawValue) }) {
        self.sources = sources
        self.sync = sync
    }

    /// A hidden name next to the final one, unique for each transfer ID and endpoint: bytes from one endpoint are never continued with
    /// those of another.
    static func name(for name: FilePath, transferID: String, at endpoint: Endpoint) -> FilePath {
        let own = name.lastComponent.map { FilePath(root: nil, components: $0).bytes } ?? []
        // FNV-1a with 64 bits. A name has at most 255 bytes (NAME_MAX, limits.h), and part of the final name must remain.
        let hash = endpoint.address.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        let suffix = Array(".\(transferID)-\(String(hash, radix: 16)).part".utf8)
        let part = Array(".".utf8) + own.prefix(240 - suffix.count) + suffix
        return name.removingLastComponent().pushing(FilePath(bytes: part))
    }

    /// The stored checkpoint of a part file.
    package func checkpoint(of part: FilePath, below root: FilePath) -> Checkpoint {
        Checkpoint(data: Data(sources.stored(root) + [0] + part.bytes), confirmed: 0)
    }

    /// The download folder of a part file; nil for any other checkpoint.
    func root(of checkpoint: Checkpoint) -> FilePath? { place(checkpoint)?.root }

    private func place(_ checkpoint: Checkpoint) -> (root: FilePath, part: FilePath)? {
        guard let end = checkpoint.data.firstIndex(of: 0) else { return nil }
        return (
            FilePath(bytes: sources.path(.folder, [UInt8](checkpoint.data[..<end]))), FilePath(bytes: checkpoint.data[(end + 1)...])
        )
    }

    /// Removes part files of one download folder. Parts in the same folder share its sync. A part that does not exist counts as removed, as
    /// does one that is no longer below the download folder.
    ///
    /// Fails immediately with the code `timedOut` while an earlier removal there has not returned: on a disk that hangs, each removal would
    /// block a thread.
    ///
    /// - Returns: The error of each part that was not removed, by its index.
    package func remove(_ checkpoints: [Checkpoint]) async -> [Int: TransferError] {
        guard let root = checkpoints.lazy.compactMap({ root(of: $0) }).first else { return [:] }
        guard busy.withLock({ $0.insert(root).inserted }) else {
            let error = TransferError(.transient, .timedOut, "\(root) does not respond: an earlier removal in it has not returned.")
            return Dictionary(uniqueKeysWithValues: checkpoints.indices.map { ($0, error) })
        }
        return await BlockingIO.run(.parts) {
            defer { busy.withLock { _ = $0.remove(root) } }
            return removeNow(checkpoints)
        }
    }

    private func removeNow(_ checkpoints: [Checkpoint]) -> [Int: TransferError] {
        var failures: [Int: TransferError] = [:]
        var folders: [FilePath: FileDescriptor] = [:]
        defer { for folder in folders.values { try? folder.close() } }
        var removed: [FilePath: [(index: Int, path: FilePath)]] = [:]
        for (index, checkpoint) in checkpoints.enumerated() {
            guard let (root, part) = place(checkpoint), let last = part.lastComponent, last.kind == .regular else { continue }
            let name = FilePath(root: nil, components: last)
            let parent = part.removingLastComponent()
            do throws(TransferError) {
                let opened: FileDescriptor
                if let folder = folders[parent] {
                    opened = folder
                } else {
                    opened = try ConfinedFolder.open(root, parentOf: part, creates: false).folder
                }
                folders[parent] = opened
                for name in [name, DownloadDestination.placingName(of: name)] {
                    let result = unsafe name.withPlatformString { unsafe unlinkat(opened.rawValue, $0, 0) }
                    guard result == 0 || errno == ENOENT else { throw .destinationUnavailable(root.pushing(part), errno: errno) }
                }
                removed[parent, default: []].append((index, root.pushing(part)))
            } catch {
                if error.code != .noSuchFile, error.code != .unsafeName { failures[index] = error }
            }
        }
        // The store forgets the parts next. Without the sync, their names may reappear after a power loss (fsync(2), on directories).
        for (parent, folder) in folders {
            guard let parts = removed[parent], sync(folder) != 0 else { continue }
            let code = errno
            for (index, path) in parts { failures[index] = .destinationUnavailable(path, errno: code) }
        }
        return failures
    }
}
