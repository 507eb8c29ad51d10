import Foundation
import Locking
package import SystemPackage
package import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The unfinished files of downloads on this machine, removed as what uploads left at servers is: by rows of the discard outbox, over restarts.
///
/// Before the first attempt at an endpoint, a file gets a checkpoint of nothing, at an address of its own, that names the part which that
/// attempt will make. Whatever becomes of the file then, the store knows what may be on the disk.
package struct LocalParts: Sendable {
    static let transportID: TransportID = "transferkit-parts"
    private static let scheme = "part:"

    private let sources: SourceFolders
    private let sync: @Sendable (FileDescriptor) -> CInt
    /// The download folders in which a removal runs.
    private let busy = Locked<Set<FilePath>>([])

    /// - Parameter sync: Makes removals in a folder durable, as fsync(2) does by default; injected by tests.
    package init(sources: SourceFolders, sync: @escaping @Sendable (FileDescriptor) -> CInt = { fsync($0.rawValue) }) {
        self.sources = sources
        self.sync = sync
    }

    /// Where the part of a file is, that is received from an endpoint.
    static func place(for endpoint: Endpoint) -> Endpoint {
        Endpoint(transport: transportID, address: scheme + endpoint.address)
    }

    /// The place that a checkpoint's address names; nil if it is that of a server.
    static func place(at address: String) -> Endpoint? {
        address.hasPrefix(scheme) ? Endpoint(transport: transportID, address: address) : nil
    }

    /// Beside the final name, hidden, and of its own for each life of the file and each endpoint: what one sent is never continued with another's.
    static func name(for name: FilePath, transferID: String, at endpoint: Endpoint) -> FilePath {
        let own = name.lastComponent.map { FilePath(root: nil, components: $0).bytes } ?? []
        // FNV-1a with 64 bits; a name has at most 255 bytes (NAME_MAX, limits.h), and is to have some left.
        let hash = endpoint.address.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }
        let suffix = Array(".\(transferID)-\(String(hash, radix: 16)).part".utf8)
        let part = Array(".".utf8) + own.prefix(240 - suffix.count) + suffix
        return name.removingLastComponent().pushing(FilePath(bytes: part))
    }

    /// What is stored of a part.
    package func checkpoint(of part: FilePath, below root: FilePath) -> Checkpoint {
        Checkpoint(data: Data(sources.stored(root) + [0] + part.bytes), confirmed: 0)
    }

    /// The download folder that a part is in or below; nil for a checkpoint of something else.
    func root(of checkpoint: Checkpoint) -> FilePath? { place(checkpoint)?.root }

    private func place(_ checkpoint: Checkpoint) -> (root: FilePath, part: FilePath)? {
        guard let end = checkpoint.data.firstIndex(of: 0) else { return nil }
        return (
            FilePath(bytes: sources.path(.folder, [UInt8](checkpoint.data[..<end]))), FilePath(bytes: checkpoint.data[(end + 1)...])
        )
    }

    /// Removes parts of one download folder. Those in the same folder share its sync. A part that is gone already counts as removed, as does one
    /// that is no longer below the download folder.
    ///
    /// Fails at once with the code `timedOut` while an earlier removal there has not returned: on a disk that hangs, each would take a thread.
    ///
    /// - Returns: An error for each part that is not removed, by its index.
    package func remove(_ checkpoints: [Checkpoint]) async -> [Int: TransferError] {
        guard let root = checkpoints.lazy.compactMap({ root(of: $0) }).first else { return [:] }
        guard busy.withLock({ $0.insert(root).inserted }) else {
            let error = TransferError(.transient, .timedOut, "\(root) does not respond: an earlier removal in it has not returned.")
            return Dictionary(uniqueKeysWithValues: checkpoints.indices.map { ($0, error) })
        }
        return await DiskThread.run(.parts) {
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
        // The store forgets the parts next. Without this, their names may come back after a loss of power (fsync(2), on directories).
        for (parent, folder) in folders {
            guard let parts = removed[parent], sync(folder) != 0 else { continue }
            let code = errno
            for (index, path) in parts { failures[index] = .destinationUnavailable(path, errno: code) }
        }
        return failures
    }
}
