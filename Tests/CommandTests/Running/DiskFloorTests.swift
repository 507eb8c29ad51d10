#if canImport(Glibc)
    import Foundation
    import Glibc
    import SystemPackage
    import Testing

    /// A storage folder on a disk with less free space than a queue requires.
    @Suite struct DiskFloorTests {
        @Test func runWithoutDisplayReportsLackOfSpace() async throws {
            let program = try TransferQ()
            guard let disk = SmallDisk(at: program.store) else { return }
            try program.folder.file("a", size: 1)
            try await program.succeed("account", "add", "studio", "http://127.0.0.1:9/files/")
            try await program.succeed("add", "studio", "a")
            let run = try await program.run("run", "--progress", "none")
            #expect(run.status == 1 && run.output == "")
            #expect(run.lines.isEmpty && run.diagnostics.split(separator: "\n").count == 1, "\(run.testDescription)")
            #expect(run.diagnostics.contains("transferq: The disk"))
            withExtendedLifetime(disk) {}
        }

        @Test func doctorReportsLackOfSpace() async throws {
            let program = try TransferQ()
            guard let disk = SmallDisk(at: program.store) else { return }
            let result = try await program.run("doctor", "--json")
            let finding = try #require(try result.objects().first { $0["check"] as? String == "disk" })
            #expect(result.status == 1 && finding["state"] as? String == "wrong")
            #expect(finding["free"] as? Int ?? .max < finding["floor"] as? Int ?? 0)
            withExtendedLifetime(disk) {}
        }

        /// A file system of 24 MiB (tmpfs(5)) that is unmounted when this object is released. The initializer returns nil if the process
        /// may not mount file systems.
        private final class SmallDisk {
            private let path: String

            init?(at folder: FilePath) {
                path = folder.string
                do {
                    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
                } catch {
                    Issue.record(error)
                    return nil
                }
                guard unsafe mount("tmpfs", path, "tmpfs", 0, "size=24m,mode=700") == 0 else {
                    Issue.record("A file system can't be mounted here.", severity: .warning)
                    return nil
                }
            }

            deinit {
                _ = unsafe umount2(path, CInt(MNT_DETACH))
            }
        }
    }
#endif
