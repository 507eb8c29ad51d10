import Foundation
import SystemPackage
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// How a test limits the space for a storage folder.
enum DiskKind: String, CaseIterable, Sendable {
    /// A small file system (tmpfs(5)), mounted in place of the storage folder: writes fail with ENOSPC, as on a full disk.
    case mounted
    /// A limit on the size of files that the process writes (setrlimit(2), RLIMIT_FSIZE).
    case limited
}

/// A small file system for the folder "store" in a root folder, for the lifetime of this object. The parent process creates this object; its
/// child processes use ``Disk``.
final class SmallDisk {
    /// The actual kind, which child processes must also use.
    let kind: DiskKind
    private let path: String

    /// If the process can't mount file systems, uses ``DiskKind/limited`` and records a warning.
    ///
    /// - Parameter megabytes: The size of the file system in units of 1,048,576 bytes.
    init(_ kind: DiskKind, in root: FilePath, folder: String = "store", megabytes: Int = 24) throws {
        path = root.appending(folder).string
        guard kind == .mounted else {
            self.kind = .limited
            return
        }
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        #if canImport(Glibc)
            let result = unsafe mount("tmpfs", path, "tmpfs", 0, "size=\(megabytes)m,mode=700")
            let reason = Errno(rawValue: errno).description
        #else
            let (result, reason) = (CInt(-1), "there is no tmpfs on this system")
        #endif
        self.kind = result == 0 ? .mounted : .limited
        if result != 0 {
            Issue.record("Can't mount a file system (\(reason)). The test uses a file size limit instead.", severity: .warning)
        }
    }

    deinit {
        guard kind == .mounted else { return }
        #if canImport(Glibc)
            _ = unsafe umount2(path, CInt(MNT_DETACH))
        #endif
    }
}

/// The disk of a storage folder, for the process that uses the folder.
struct Disk {
    private let kind: DiskKind
    private let storage: FilePath

    /// - Parameter root: The folder that contains the folder "store".
    init(_ kind: DiskKind, _ root: FilePath) {
        self.kind = kind
        storage = root.appending("store")
        // By default, SIGXFSZ ends the process at the first write beyond the limit.
        _ = signal(SIGXFSZ, SIG_IGN)
    }

    /// Restricts the free space to approximately `room` bytes. If `room` is nil, removes the restriction.
    func setFreeSpace(_ room: Int?) throws {
        switch kind {
        case .mounted: try fill(leaving: room)
        case .limited:
            let log = storage.appending("queue.sqlite-wal").string
            let size = (try? FileManager.default.attributesOfItem(atPath: log)[.size] as? Int) ?? 0
            limit(room.map { size + $0 })
        }
    }

    private func fill(leaving room: Int?) throws {
        let filler = storage.appending("filler")
        try? FileManager.default.removeItem(atPath: filler.string)
        guard let room else { return }
        let file = try FileDescriptor.open(filler, .writeOnly, options: [.create, .truncate], permissions: [.ownerReadWrite])
        defer { try? file.close() }
        let block = [UInt8](repeating: 0, count: 4_096)
        var size = 0
        while true {
            do {
                size += try unsafe block.withUnsafeBytes { unsafe try file.write($0) }
            } catch Errno.noSpace {
                break
            }
        }
        _ = ftruncate(file.rawValue, off_t(max(0, size - room)))
    }

    private func limit(_ size: Int?) {
        #if canImport(Glibc)
            let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
        #else
            let resource = RLIMIT_FSIZE
        #endif
        var limits = rlimit()
        guard unsafe getrlimit(resource, &limits) == 0 else { return }
        limits.rlim_cur = size.map { rlim_t($0) } ?? limits.rlim_max
        let result = unsafe setrlimit(resource, &limits)
        #expect(result == 0)
    }
}
