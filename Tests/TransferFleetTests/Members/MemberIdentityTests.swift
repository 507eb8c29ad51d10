import Foundation
import Logging
import SystemPackage
import Testing
import TransferFleet
import TransferKit

@Suite(.timeLimit(.minutes(2))) struct MemberIdentityTests {
    /// Opens a member, and shuts it down. Needs no database, because a member connects only when it runs.
    private func open(_ folder: FilePath) async throws {
        let logger = Logger(label: "fleet") { _ in SwiftLogNoOpLogHandler() }
        let member = try await FleetMember(
            of: "postgresql://127.0.0.1:1/x", folder: folder, transports: [],
            configuration: FleetMemberConfiguration(name: "m", logger: logger))
        await member.queue.shutdown()
    }

    private static func identity(at path: String) throws -> UUID? {
        UUID(uuidString: try String(contentsOfFile: path, encoding: .utf8).trimmingCharacters(in: .newlines))
    }

    @Test(arguments: ["a link", "a link without a target", "a folder"]) func `the identity is read only from a regular file`(
        kind: String
    ) async throws {
        let root = FileManager.default.temporaryDirectory.appending(path: "identity-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: root) }
        let folder = FilePath(root.path).appending("store")
        try await open(folder)
        let (path, other) = (folder.appending("fleet-member").string, FilePath(root.path).appending("other").string)
        let identity = try #require(try Self.identity(at: path))
        try FileManager.default.moveItem(atPath: path, toPath: other)
        if kind == "a folder" {
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
        } else {
            try FileManager.default.createSymbolicLink(
                atPath: path, withDestinationPath: kind == "a link" ? other : other + "-missing")
        }
        let error = await #expect(throws: QueueError.self) { try await open(folder) }
        #expect(error?.code == .storageUnavailable)
        #expect(error?.message.contains(path) == true, "\(error?.message ?? "")")
        #expect(try Self.identity(at: other) == identity)
        #expect(!FileManager.default.fileExists(atPath: other + "-missing"))
        // With the original file, the member has its identity again.
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: other, toPath: path)
        try await open(folder)
        #expect(try Self.identity(at: path) == identity)
    }

    /// If a member is killed while it writes the file, the file is incomplete.
    @Test(arguments: ["", "0F5A", String(repeating: "x", count: 100)]) func `an incomplete identity is replaced`(
        text: String
    ) async throws {
        let root = FileManager.default.temporaryDirectory.appending(path: "identity-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: root) }
        let folder = FilePath(root.path).appending("store")
        try await open(folder)
        let path = folder.appending("fleet-member").string
        try text.write(toFile: path, atomically: false, encoding: .utf8)
        try await open(folder)
        let identity = try Self.identity(at: path)
        #expect(identity != nil)
        try await open(folder)
        #expect(try Self.identity(at: path) == identity)
    }
}
