import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The unfinished files of downloads on this machine, removed as what uploads left at servers is: by rows of the discard outbox, over restarts.
///
/// Before the first attempt at an endpoint, a file gets a checkpoint of nothing, at an address of its own, that names the part which that
/// attempt will make. Whatever becomes of the file then, the store knows what may be on the disk.
struct LocalParts: PartialDiscarding {
    static let transportID: TransportID = "transferkit-parts"
    private static let scheme = "part:"

    let id = transportID
    let sources: SourceFolders

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
    func checkpoint(of part: FilePath, below root: FilePath) -> Checkpoint {
        Checkpoint(data: Data(sources.stored(root) + [0] + part.bytes), confirmed: 0)
    }

    /// Removes a part. One that is gone already counts as removed, as does one that is no longer below its folder.
    func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        guard let end = checkpoint.data.firstIndex(of: 0) else { return }
        let root = FilePath(bytes: sources.path(.folder, [UInt8](checkpoint.data[..<end])))
        let part = FilePath(bytes: checkpoint.data[(end + 1)...])
        try await DiskThread.run { () throws(TransferError) in try Self.remove(part, below: root) }
    }

    private static func remove(_ part: FilePath, below root: FilePath) throws(TransferError) {
        let (folder, name): (FileDescriptor, FilePath)
        do throws(TransferError) {
            (folder, name) = try ConfinedFolder.open(root, parentOf: part, creates: false)
        } catch {
            if error.code == .noSuchFile || error.code == .unsafeName { return }
            throw error
        }
        defer { try? folder.close() }
        for name in [name, DownloadDestination.placingName(of: name)] {
            let result = unsafe name.withPlatformString { unsafe unlinkat(folder.rawValue, $0, 0) }
            guard result == 0 || errno == ENOENT else { throw .destinationUnavailable(root.pushing(part), errno: errno) }
        }
        // The store forgets the part next. Without this, its name may come back after a loss of power (fsync(2), on directories).
        guard fsync(folder.rawValue) == 0 else { throw .destinationUnavailable(root.pushing(part), errno: errno) }
    }

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        throw TransferError(.unsupported, .unsupported, "No endpoint can be reached by \"\(id)\".")
    }

    func shutdown() async {}
}
