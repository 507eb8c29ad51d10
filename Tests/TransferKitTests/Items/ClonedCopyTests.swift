#if os(Linux)
    import Foundation
    import Glibc
    import Logging
    import ProcessFixture
    import SystemPackage
    import Testing
    import TransferCore
    import TransferKit
    import TransportTesting

    private let programs = ["mkfs.btrfs", "mount"]

    private let canMount =
        geteuid() == 0 && FileManager.default.fileExists(atPath: "/dev/loop-control")
        && ((try? String(contentsOfFile: "/proc/filesystems", encoding: .utf8)) ?? "").contains("btrfs")
        && programs.allSatisfy { name in
            ["/usr/sbin", "/usr/bin"].contains { FileManager.default.isExecutableFile(atPath: "\($0)/\(name)") }
        }

    @Suite(.enabled(if: canMount, "Requires root, loop devices, and Btrfs with its program mkfs.btrfs (Tests/install tests)"))
    struct ClonedCopyTests {
        @Test func copySharesBlocksOfFile() async throws {
            let fixture = try QueueFixture()
            let disk = try BtrfsDisk(in: fixture.folder.path)
            defer { withExtendedLifetime(disk) {} }
            let (source, size) = (disk.folder.appending("source"), 4 << 20)
            let content = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8) })
            try content.write(to: URL(fileURLWithPath: source.string))
            #expect(try Self.sharesBlocks(source) == false)
            var configuration = QueueConfiguration(diskFloor: 0)
            configuration.logger.logLevel = .critical
            let queue = try await TransferQueue(
                storage: .folder(disk.folder.appending("store")), transports: [fixture.memory], configuration: configuration)
            try await queue.save(Account("a", endpoints: [fixture.memory.endpoint()]))
            var item = TransferItem(source, as: "copy")
            item.keepsCopy = true
            let session = try await queue.enqueue(.upload(items: [item], to: "a"))
            let copy = try #require(try await queue.items(of: session.id).first).source
            #expect(try Self.sharesBlocks(copy))
            try Data(count: size).write(to: URL(fileURLWithPath: source.string))
            try await queue.start()
            #expect(try await session.value.state == .completed)
            #expect(fixture.memory.contents(of: "copy") == content)
            await queue.shutdown()
        }

        /// Returns whether all blocks of a file also belong to another file (FS_IOC_FIEMAP).
        private static func sharesBlocks(_ path: FilePath) throws -> Bool {
            let (headerSize, extentSize, capacity) = (32, 56, 64)
            let file = try FileDescriptor.open(path, .readOnly)
            return try file.closeAfter {
                let map = UnsafeMutableRawBufferPointer.allocate(byteCount: headerSize + extentSize * capacity, alignment: 8)
                defer { unsafe map.deallocate() }
                unsafe map.initializeMemory(as: UInt8.self, repeating: 0)
                unsafe map.storeBytes(of: UInt64.max, toByteOffset: 8, as: UInt64.self)  // fm_length
                unsafe map.storeBytes(of: 1, toByteOffset: 16, as: UInt32.self)  // fm_flags: FIEMAP_FLAG_SYNC
                unsafe map.storeBytes(of: UInt32(capacity), toByteOffset: 24, as: UInt32.self)  // fm_extent_count
                guard let start = map.baseAddress, unsafe ioctl(file.rawValue, 0xC020_660B, start) == 0 else {
                    throw Errno(rawValue: errno)
                }
                let count = unsafe Int(map.load(fromByteOffset: 20, as: UInt32.self))  // fm_mapped_extents
                let shared: UInt32 = 0x2000  // FIEMAP_EXTENT_SHARED
                return count > 0
                    && (0..<count).allSatisfy {
                        unsafe map.load(fromByteOffset: headerSize + extentSize * $0 + 40, as: UInt32.self) & shared != 0
                    }
            }
        }
    }

    /// A new Btrfs file system in a file, mounted in a folder for the lifetime of this object.
    private final class BtrfsDisk {
        let folder: FilePath

        init(in root: FilePath) throws {
            folder = root.appending("disk")
            let image = root.appending("image")
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
            try FileDescriptor.open(image, .writeOnly, options: .create, permissions: .ownerReadWrite).closeAfter {}
            // The smallest size that mkfs.btrfs accepts is 109 MiB. Most of the file is a hole.
            try #require(unsafe truncate(image.string, 128 << 20) == 0)
            try Self.run("mkfs.btrfs", ["--quiet", image.string])
            try Self.run("mount", ["-t", "btrfs", "-o", "loop", image.string, folder.string])
        }

        private static func run(_ program: String, _ arguments: [String]) throws {
            let end = try StartedProgram(program, arguments, environment: ["PATH": "/usr/sbin:/usr/bin:/sbin:/bin"]).waitForEnd()
            try #require(end?.status == 0 && end?.wasKilled == false, "\(program) failed")
        }

        deinit { _ = unsafe umount2(folder.string, CInt(MNT_DETACH)) }
    }
#endif
