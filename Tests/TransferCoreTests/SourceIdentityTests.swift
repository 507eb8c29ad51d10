import Foundation
import SystemPackage
import Testing
import TransferCore

@Suite struct SourceIdentityTests {
    private let identity = SourceIdentity(size: 10, modificationTime: 5, inode: 1, device: 2, bootID: "a")

    @Test func sameIdentityHasNoDifference() {
        #expect(identity.difference(from: identity) == nil)
    }

    @Test func sizeAndTimeShowChangedContent() throws {
        var other = identity
        other.size = 11
        guard case .content(let size) = other.difference(from: identity) else { throw Unexpected() }
        #expect(size.contains("10") && size.contains("11"))
        other = identity
        other.modificationTime = 6
        guard case .content = other.difference(from: identity) else { throw Unexpected() }
    }

    @Test func comparesInodesOnlyWithinOneBoot() {
        var other = identity
        other.inode = 9
        #expect(other.difference(from: identity) == .fileReplaced)
        other.device = 9
        other.bootID = "b"
        #expect(other.difference(from: identity) == nil)
    }

    @Test func readsIdentityOfRealFiles() throws {
        let folder = FilePath(FileManager.default.temporaryDirectory.path).appending("identity-\(UUID().uuidString)")
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder.string) }
        let file = folder.appending("file")
        try Data("hello".utf8).write(to: URL(fileURLWithPath: file.string))
        let first = try SourceIdentity(ofFileAt: file)
        #expect(first.size == 5)
        #expect(!first.bootID.isEmpty)
        try Data("hellooo".utf8).write(to: URL(fileURLWithPath: file.string))
        #expect(try SourceIdentity(ofFileAt: file).difference(from: first) != nil)
        #expect(try #require(throws: TransferError.self) { try SourceIdentity(ofFileAt: folder) }.code == .notARegularFile)
        #expect(try #require(throws: TransferError.self) { try SourceIdentity(ofFileAt: folder.appending("no")) }.code == .noSuchFile)
    }

    private struct Unexpected: Error {}
}
