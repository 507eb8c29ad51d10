import Foundation
import Testing

/// The commands of `transferq` work with the folder transport.
@Suite struct CommandTests {
    @Test func filesTransferInBothDirections() async throws {
        let program = try FolderProgram()
        let drive = try program.folder("drive")
        try Data("first cut".utf8).write(to: program.base.appending(path: "reel.mov"))
        let address = "folder://localhost\(drive.path)/"

        #expect(try await program.run("account", "add", "archive", address).status == 0)
        let check = try await program.run("account", "check", "archive")
        #expect(check.status == 0 && check.text.contains("responded in"), "\(check.text)")
        #expect(try await program.run("add", "archive", "reel.mov").status == 0)
        let run = try await program.run("run")
        #expect(run.status == 0, "\(run.text)")
        #expect(try Data(contentsOf: drive.appending(path: "reel.mov")) == Data("first cut".utf8))

        try FileManager.default.removeItem(at: program.base.appending(path: "reel.mov"))
        #expect(try await program.run("add", "archive", "reel.mov", "--download").status == 0)
        #expect(try await program.run("run").status == 0)
        #expect(try Data(contentsOf: program.base.appending(path: "reel.mov")) == Data("first cut".utf8))

        let doctor = try await program.run("doctor")
        #expect(doctor.status == 0 && doctor.text.contains("folder://"), "\(doctor.text)")
    }

    @Test func commandsRejectUnsupportedSettingsSessionsAndDetachedDrives() async throws {
        let program = try FolderProgram()
        let address = "folder://localhost\(try program.folder("drive").path)/"
        for name in ["one", "two"] { try Data(name.utf8).write(to: try program.folder(name).appending(path: "reel.mov")) }

        let misspeltSetting = try await program.run("account", "add", "archive", address, "--setting", "speed=9")
        #expect(misspeltSetting.status == 2 && misspeltSetting.text.contains("no setting \"speed\""), "\(misspeltSetting.text)")
        let tokenOption = try await program.run("account", "add", "archive", address, "--token-env", "TOKEN")
        #expect(tokenOption.status == 2 && tokenOption.text.contains("--token-env"), "\(tokenOption.text)")
        #expect(try await program.run("account", "add", "archive", address).status == 0)
        let checksum = try await program.run("add", "archive", "one/reel.mov", "--verify", "checksum")
        #expect(checksum.status == 2 && checksum.text.contains("can't compare checksums"), "\(checksum.text)")
        let clash = try await program.run("add", "archive", "one/reel.mov", "two/reel.mov")
        #expect(clash.status == 2 && clash.text.contains("--overwrite rename"), "\(clash.text)")

        try FileManager.default.removeItem(at: program.base.appending(path: "drive"))
        let detachedDrive = try await program.run("account", "check", "archive")
        #expect(detachedDrive.status == 1 && detachedDrive.text.contains("Attach its drive"), "\(detachedDrive.text)")
    }
}

/// The built program `transferq-folder` with a separate storage folder.
final class FolderProgram: Sendable {
    let base: URL

    /// The path of the built program, which is in the same folder as the test program.
    private static let executable = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()
        .appending(path: "transferq-folder")

    init() throws {
        base = FileManager.default.temporaryDirectory.appending(path: "transferq-folder-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: base, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: base)
    }

    /// Creates a folder beside the storage folder.
    func folder(_ name: String) throws -> URL {
        let folder = base.appending(path: name)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        return folder
    }

    /// Runs a command until it exits. The returned text contains standard output and standard error.
    func run(_ arguments: String...) async throws -> (status: Int32, text: String) {
        let output = base.appending(path: "output-\(UUID().uuidString)")
        try Data().write(to: output)
        let handle = try FileHandle(forWritingTo: output)
        let process = Process()
        process.executableURL = Self.executable
        process.arguments = arguments + ["--store", base.appending(path: "store").path]
        process.currentDirectoryURL = base
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = handle
        process.standardError = handle
        let status = try await withCheckedThrowingContinuation { continuation in
            process.terminationHandler = { continuation.resume(returning: $0.terminationStatus) }
            do { try process.run() } catch { continuation.resume(throwing: error) }
        }
        return (status, String(decoding: try Data(contentsOf: output), as: UTF8.self))
    }
}
