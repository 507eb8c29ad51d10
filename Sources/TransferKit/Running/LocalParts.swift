import Foundation
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

    /// A folder with parts, below the folder of a download.
    struct Folder: Hashable {
        let root: FilePath
        let name: FilePath
    }

    /// The folder that a part is in; nil for a checkpoint of something else.
    func folder(of checkpoint: Checkpoint) -> Folder? {
        place(checkpoint).map { Folder(root: $0.root, name: $0.part.removingLastComponent()) }
    }

    private func place(_ checkpoint: Checkpoint) -> (root: FilePath, part: FilePath)? {
        guard let end = checkpoint.data.firstIndex(of: 0) else { return nil }
        return (
            FilePath(bytes: sources.path(.folder, [UInt8](checkpoint.data[..<end]))), FilePath(bytes: checkpoint.data[(end + 1)...])
        )
    }

    /// Removes parts of one folder, and makes that durable at once for all of them. A part that is gone already counts as removed, as does one that
    /// is no longer below its folder.
    ///
    /// - Returns: An error for each part that is not removed, by its index.
    package func remove(_ checkpoints: [Checkpoint]) async -> [Int: TransferError] {
        await DiskThread.run { removeNow(checkpoints) }
    }

    private func removeNow(_ checkpoints: [Checkpoint]) -> [Int: TransferError] {
        var failures: [Int: TransferError] = [:]
        var folder: FileDescriptor?
        defer { try? folder?.close() }
        var removed: [(index: Int, path: FilePath)] = []
        for (index, checkpoint) in checkpoints.enumerated() {
            guard let (root, part) = place(checkpoint), let last = part.lastComponent, last.kind == .regular else { continue }
            let name = FilePath(root: nil, components: last)
            do throws(TransferError) {
                let opened: FileDescriptor
                if let folder { opened = folder } else { opened = try ConfinedFolder.open(root, parentOf: part, creates: false).folder }
                folder = opened
                for name in [name, DownloadDestination.placingName(of: name)] {
                    let result = unsafe name.withPlatformString { unsafe unlinkat(opened.rawValue, $0, 0) }
                    guard result == 0 || errno == ENOENT else { throw .destinationUnavailable(root.pushing(part), errno: errno) }
                }
                removed.append((index, root.pushing(part)))
            } catch {
                if error.code != .noSuchFile, error.code != .unsafeName { failures[index] = error }
            }
        }
        // The store forgets the parts next. Without this, their names may come back after a loss of power (fsync(2), on directories).
        guard let folder, !removed.isEmpty, sync(folder) != 0 else { return failures }
        let code = errno
        for (index, path) in removed { failures[index] = .destinationUnavailable(path, errno: code) }
        return failures
    }
}
