import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit

@Suite struct StoreTests {
    @Test(arguments: [
        ["--store", "given"], ["--store=given"], ["--json", "-v", "--store", "given"], ["-vvv", "--verbose", "--store=given"],
    ])
    func acceptsOptionsBeforeCommand(options: [String]) async throws {
        let program = try TransferQ()
        let result = try await program.run(options + ["queue", "status"])
        #expect(result.status == 0, "\(result.diagnostics)")
        #expect(result.output.hasPrefix("{") == options.contains("--json"))
        #expect(FileManager.default.fileExists(atPath: program.folder.path.appending("given").string))
        #expect(!FileManager.default.fileExists(atPath: program.store.string))
    }

    @Test func findsStorageFolder() async throws {
        var program = try TransferQ()
        let root = program.folder.path
        let isDatabase = { (folder: FilePath) in FileManager.default.fileExists(atPath: folder.appending("queue.sqlite").string) }
        try await program.succeed("list", "--store", "given")
        #expect(isDatabase(root.appending("given")))
        try await program.succeed("list")
        #expect(isDatabase(program.store))
        program.environment = ["TRANSFERQ_STORE": "", "XDG_STATE_HOME": root.appending("state").string, "HOME": root.string]
        try await program.succeed("list")
        #expect(isDatabase(root.appending("state").appending("transferq")))
        program.environment["XDG_STATE_HOME"] = "relative"
        try await program.succeed("list")
        let home = root.pushing(".local/state/transferq")
        #expect(isDatabase(home))
        #expect(try FileManager.default.attributesOfItem(atPath: home.string)[.posixPermissions] as? Int == 0o700)
    }

    /// SQLite maps the index of its write-ahead log into memory, but allocates only one disk block for each page of the index. On a full
    /// disk, an access to another block of that page would end the process with SIGBUS.
    @Test(arguments: [1_024, 2_048, 4_096]) func reportsFullDisk(blockSize: Int) async throws {
        let program = try TransferQ()
        let script = """
            set -e
            trap 'umount mounted 2>/dev/null || true' EXIT
            truncate -s 12M image && mkfs.ext4 -q -b \(blockSize) image && mkdir mounted && mount -o loop image mounted || exit 77
            "$0" account add studio http://127.0.0.1:9/ --store mounted/store
            "$0" list --store mounted/store
            # Fills all blocks, including those that are reserved for root.
            dd if=/dev/zero of=mounted/filler bs=64k 2>/dev/null || true
            dd if=/dev/zero of=mounted/filler2 bs=1k 2>/dev/null || true
            for command in list "queue status" "remove --all" run; do
                status=0
                "$0" $command --store mounted/store || status=$?
                test $status = 3 || exit 1
            done
            rm mounted/filler mounted/filler2
            "$0" account show studio --store mounted/store
            """
        let shell = try program.start("/bin/sh", ["-c", script].map { Array($0.utf8) } + [TransferQ.executable.bytes])
        let result = await shell.result()
        guard result.status != 77 else {
            Issue.record("No file system can be mounted here.", severity: .warning)
            return
        }
        #expect(result.status == 0, "\(result.testDescription)")
    }

    @Test func rejectsNewerSchema() async throws {
        let program = try TransferQ()
        try await program.succeed("list")
        let database = try FileHandle(forUpdating: URL(fileURLWithPath: program.store.appending("queue.sqlite").string))
        // sqlite.org/fileformat.html, section 1.3: the user version, big-endian.
        try database.seek(toOffset: 60)
        try database.write(contentsOf: Data([0, 0, 0, 99]))
        try database.close()
        for command in [["list"], ["run"], ["add", "x", "/etc/hostname"], ["account", "list"]] {
            let result = try await program.run(command)
            #expect(result.status == 3)
            #expect(result.diagnostics.contains("schema 99"))
        }
        let doctor = try await program.run("doctor", "--json")
        #expect(doctor.status == 3)
        #expect(try doctor.objects().contains { $0["check"] as? String == "store" && $0["state"] as? String == "wrong" })
    }

    @Test func reportsDamagedDatabase() async throws {
        let program = try TransferQ()
        try await program.succeed("list")
        let database = try FileHandle(forUpdating: URL(fileURLWithPath: program.store.appending("queue.sqlite").string))
        // Removes the write-ahead log, which would repair the database, and overwrites 8 KiB after the header.
        try? FileManager.default.removeItem(atPath: program.store.appending("queue.sqlite-wal").string)
        try database.seek(toOffset: 100)
        try database.write(contentsOf: Data(repeating: 0x41, count: 8192))
        try database.close()
        let result = try await program.run("list")
        #expect(result.status == 3)
        #expect(result.diagnostics.contains("damaged"))
    }

    @Test func rejectsInvalidFolders() async throws {
        let program = try TransferQ()
        let file = try program.folder.file("file", size: 1)
        // Root ignores permissions, but even root can't use these paths as folders.
        for store in [file.string, file.appending("below").string, "/proc/transferq"] {
            let result = try await program.run("list", "--store", store)
            #expect(result.status == 3, "\(store): \(result.diagnostics)")
            #expect(result.diagnostics.contains(store))
        }
        #expect(try await program.run("list", "--store", "").status == 2)
    }

    @Test func reportsOtherOwner() async throws {
        let program = try TransferQ()
        let queue = try await TransferQueue(storage: .folder(program.store), transports: [])
        let result = try await program.run("list")
        await queue.shutdown()
        #expect(result.status == 3)
        #expect(result.diagnostics.contains("process \(ProcessInfo.processInfo.processIdentifier)"))
        try await program.succeed("list")
    }

    @Test(arguments: [(20, false), (50, true)]) func runsManyCommandsConcurrently(count: Int, hasOwner: Bool) async throws {
        let program = try TransferQ()
        try await program.succeed("account", "add", "studio", "https://one.example/")
        try program.folder.file("a", size: 1)
        let run = hasOwner ? try RunningQueue(program, "--forever") : nil
        try await run?.event("queueStarted")
        let ids = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<count { group.addTask { try await program.succeed("add", "studio", "a", "--hold").output } }
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(ids.count == count)
        #expect(try await program.succeed("list", "--json").lines.count == count)
        run?.command.send(SIGTERM)
        _ = await run?.command.result()
    }

    /// With a path that is not UTF-8, SQLite would open a database at a different path, which may belong to another queue.
    @Test func rejectsFolderNameThatIsNotUTF8() async throws {
        let program = try TransferQ()
        for command in ["exec \"$0\" list", "exec \"$0\" agent start"] {
            let script = "TRANSFERQ_STORE=$PWD/$(printf 'q\\377') " + command
            let result = try await program.start("/bin/sh", [Array("-c".utf8), Array(script.utf8), TransferQ.executable.bytes]).result()
            #expect(result.status == 2 && result.diagnostics.contains("UTF-8"), "\(result.testDescription)")
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: program.folder.path.string)
        #expect(!names.contains { $0.hasPrefix("q") }, "\(names)")
    }

    @Test func diagnosesInstallation() async throws {
        let program = try TransferQ()
        let sound = try await program.run("doctor", "--json")
        #expect(sound.status == 0, "\(sound.output)")
        let checks = try sound.objects()
        #expect(checks.allSatisfy { $0["state"] as? String == "ok" })
        let store = try #require(checks.first { $0["check"] as? String == "store" })
        #expect((store["sqlite"] as? String)?.hasPrefix("3.") == true)
        #expect((store["schema"] as? Int ?? 0) > 0)
        for (transport, library) in [("tus", "libcurl/"), ("http", "libcurl/"), ("sftp", "libssh2/")] {
            let check = try #require(checks.first { $0["check"] as? String == "transport \(transport)" })
            #expect((check["libraries"] as? [String])?.contains { $0.hasPrefix(library) } == true, "\(check)")
        }
        let owner = try #require(checks.first { $0["check"] as? String == "owner" })
        #expect(owner["process"] is NSNull)

        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program.store.string)
        let open = try await program.run("doctor")
        #expect(open.status == 1)
        #expect(open.output.contains("chmod 700"))
    }

    /// Makes a program record which folders it syncs.
    ///
    /// - Returns: A function that returns whether the program has synced a folder.
    private static func recordSyncs(of program: inout TransferQ) async throws -> (FilePath) throws -> Bool {
        let library = program.folder.path.appending("recorder.so")
        let recorder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Campaigns/sync-recorder.c").path
        let words = ["cc", "-shared", "-fPIC", "-o", library.string, recorder, "-ldl", "-pthread"]
        let compiled = try await program.start("/usr/bin/env", words.map { Array($0.utf8) }).result()
        try #require(compiled.status == 0, "\(compiled.testDescription)")
        let records = program.folder.path.appending("records")
        try FileManager.default.createDirectory(atPath: records.string, withIntermediateDirectories: true)
        program.environment = [
            "LD_PRELOAD": library.string, "POWERLOSS_ROOTS": program.folder.path.string, "POWERLOSS_RECORDS": records.string,
            "POWERLOSS_STOP": "0",
        ]
        return { folder in
            let number = try #require(try FileManager.default.attributesOfItem(atPath: folder.string)[.systemFileNumber])
            return try FileManager.default.contentsOfDirectory(atPath: records.string).contains { $0.hasPrefix("d.\(number).") }
        }
    }

    /// After a power failure, a folder exists only if its parent was synced. The parents of existing folders are also
    /// synced, because the process that created these folders may have been killed before the sync.
    @Test(arguments: [false, true]) func syncsParentsOfStorageFolder(exists: Bool) async throws {
        var program = try TransferQ()
        let isSynced = try await Self.recordSyncs(of: &program)
        let parent = program.folder.path.appending("outer")
        let store = parent.appending("store")
        if exists {
            try FileManager.default.createDirectory(atPath: store.string, withIntermediateDirectories: true)
            try FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: store.string)
        }
        try await program.succeed("list", "--store", store.string)
        for folder in [program.folder.path, parent, store] { #expect(try isSynced(folder), "\(folder)") }
    }

    /// The download folder, which the command creates if necessary, must not disappear after a power failure.
    @Test(arguments: ["new", "existing"]) func syncsParentOfDownloadFolder(name: String) async throws {
        var program = try TransferQ()
        try await program.succeed("account", "add", "studio", "http+put://127.0.0.1:9/in/")
        let isSynced = try await Self.recordSyncs(of: &program)
        let parent = program.folder.path.appending("outer")
        try FileManager.default.createDirectory(atPath: parent.appending("existing").string, withIntermediateDirectories: true)
        try await program.succeed("download", "studio", "a", "--to", "outer/\(name)")
        #expect(FileManager.default.fileExists(atPath: parent.appending(name).string))
        #expect(try isSynced(parent))
    }
}
