import Foundation
import Locking
import Logging
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct HostileListingTests {
    private let fixture: DownloadFixture

    init() throws {
        fixture = try DownloadFixture()
    }

    /// Lists the entries that `batches` returns for a folder and a batch number, until `batches` returns nil.
    private struct Lister: FolderListing {
        let id = TransportID(rawValue: "memory")
        let memory: MemoryTransport
        let batches: @Sendable (RemotePath, Int) throws -> [RemoteEntry]?

        func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
            memory.provide(Data("content".utf8), as: attempt.remotePath.description)
            return try await memory.perform(attempt, reporting: reporter)
        }

        func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
            var number = 0
            while let batch = try batches(attempt.remotePath, number) {
                try await receive(batch)
                number += 1
            }
        }

        func shutdown() async {}
    }

    private static func file(_ name: String, size: Int64? = 7) -> RemoteEntry {
        RemoteEntry(name: Array(name.utf8), kind: .file(size: size))
    }

    /// Downloads the folder `x`, and retries the session `retries` times.
    private func download(
        maximumNames: Int64 = 10_000_000, retries: Int = 0, _ batches: @escaping @Sendable (RemotePath, Int) throws -> [RemoteEntry]?
    ) async throws -> (items: [ItemStatus], error: TransferError?, statistics: SessionStatistics) {
        var configuration = QueueConfiguration()
        configuration.logger.logLevel = .critical
        configuration.maximumListedNames = maximumNames
        let queue = try await TransferQueue(
            storage: .folder(fixture.queue.folder.path.appending("store")),
            transports: [Lister(memory: fixture.memory, batches: batches)], configuration: configuration)
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let session = try await queue.enqueue(
            .download(items: [.remoteFolder(try RemotePath("x"))], from: "a", to: fixture.target))
        try await queue.start()
        _ = try? await session.value
        for _ in 0..<retries {
            try await queue.retry(session.id)
            _ = try? await session.value
        }
        await queue.waitUntilIdle()
        let status = try await session.status
        let items = try await queue.items(of: session.id, from: 0, limit: 100)
        await queue.shutdown()
        return (items, status.error, status.statistics)
    }

    @Test(arguments: [0, 2]) func rejectsEscapingNamesAndDownloadsOtherFiles(retries: Int) async throws {
        let names = ["../out", "..", ".", "/etc/passwd", "a/b", "", "nul\0byte", "good", "two\nlines", "...", "-r"]
        let (items, error, statistics) = try await download(retries: retries) { folder, number in
            number == 0 ? names.map { Self.file($0) } : nil
        }
        #expect(fixture.memory.attempts.map(\.path.description).sorted() == ["x/-r", "x/...", "x/good", "x/two\nlines"])
        #expect(try fixture.names() == ["x", "x/-r", "x/...", "x/good", "x/two\nlines"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: fixture.queue.folder.path.string).sorted() == ["store", "target"])
        #expect(statistics.filesDone == 4 && statistics.filesFailed == 5 && error != nil)
        let messages = items.compactMap(\.error).filter { $0.code == .unsafeName }.map(\.message)
        #expect(
            messages.contains("The server lists a name in x that refers to another folder: \"../out\". This entry is not downloaded.")
                && messages.contains("The server lists a name in x that is empty: \"\". This entry is not downloaded."))
        #expect(messages.count == 5)
        #expect(error?.message.hasPrefix("5 of 9 files failed. First error: The server lists a name in x that ") == true)
    }

    /// The names of an endless folder do not count towards the limit for later folders.
    @Test func endlessFolderDoesNotAffectOtherFolders() async throws {
        let (items, _, statistics) = try await download(maximumNames: 17_000) { folder, number in
            switch folder.description {
            case "x": number == 0 ? ["endless", "good"].map { RemoteEntry(name: Array($0.utf8), kind: .folder) } : nil
            case "x/good": number == 0 ? [Self.file("1"), Self.file("2")] : nil
            default: (0..<1_000).map { RemoteEntry(name: Array("\(number)-\($0)".utf8), kind: .symbolicLink) }
            }
        }
        #expect(statistics.files == 3 && statistics.filesDone == 2 && statistics.filesFailed == 1)
        #expect(items.filter { $0.state == .failed }.map(\.destination.description) == ["x/endless"])
        #expect(try fixture.names() == ["x", "x/good", "x/good/1", "x/good/2"])
    }

    @Test func brokenListingDoesNotCountTowardsLimit() async throws {
        let remainingBreaks = Locked(1)
        let (_, error, statistics) = try await download(maximumNames: 20_000) { _, number in
            switch number {
            case 0...16: return (0..<1_000).map { RemoteEntry(name: Array("skipped \(number) \($0)".utf8), kind: .symbolicLink) }
            case 17:
                let mustBreak = remainingBreaks.withLock { remainingBreaks in
                    remainingBreaks -= 1
                    return remainingBreaks >= 0
                }
                if mustBreak { throw TransferError(.transient, .connectionLost, "The connection broke.", retryAfter: .milliseconds(1)) }
                return [Self.file("a")]
            default: return nil
            }
        }
        #expect(error == nil && statistics.files == 1 && statistics.filesDone == 1)
    }

    @Test func acceptsNamesThatAreNotUTF8() async throws {
        let name: [UInt8] = [0x66, 0xFF, 0xFE, 0x6F]
        let (items, _, statistics) = try await download { folder, number in
            if folder.bytes != [UInt8(ascii: "x")] {
                return number == 0 ? [Self.file("inside")] : nil
            }
            return number == 0 ? [RemoteEntry(name: name, kind: .folder)] : nil
        }
        #expect(statistics.filesDone == 1 && items.first?.destination.bytes == Array("x/".utf8) + name + Array("/inside".utf8))
        let path = FilePath(bytes: fixture.target.bytes + Array("/x/".utf8) + name + Array("/inside".utf8))
        let file = try FileDescriptor.open(path, .readOnly)
        try file.close()
    }

    @Test func endsEndlessListing() async throws {
        let (items, error, statistics) = try await download(maximumNames: 20_000) { _, number in
            (0..<1_000).map { Self.file("\(number)-\($0)") }
        }
        #expect(statistics.files == 1 && statistics.filesFailed == 1 && items.count == 1)
        #expect(
            error?.message
                == "With x, the session exceeds its limit of 20000 files and folders. Download the subfolders in separate sessions.")
        #expect(try fixture.names() == [])
    }

    @Test func endsListingThatRepeatsNames() async throws {
        let (items, error, statistics) = try await download { _, _ in (0..<1_000).map { Self.file("\($0)") } }
        #expect(statistics.files == 1 && statistics.filesFailed == 1 && items.count == 1)
        #expect(error?.message.hasPrefix("The server keeps listing the same names in x, such as ") == true)
        #expect(try fixture.names() == [])
    }

    @Test func endsListingThatRepeatsDotNames() async throws {
        let (items, error, statistics) = try await download { _, number in
            number < 3 ? (0..<1_000).map { Self.file($0.isMultiple(of: 2) ? "." : "..") } : nil
        }
        #expect(statistics.files == 1 && statistics.filesFailed == 1 && items.count == 1)
        #expect(error?.message.hasPrefix("The server keeps listing the same names in x, such as ") == true)
    }

    /// A server may list a name twice if another client renames files during the listing.
    @Test func downloadsRepeatedNameOnce() async throws {
        // The names repeat within the first batch, and again after more names than the queue holds in memory.
        let (_, error, statistics) = try await download { folder, number in
            guard folder.description == "x" else { return number == 0 ? [Self.file("in")] : nil }
            let folders = ["f", "f"].map { RemoteEntry(name: Array($0.utf8), kind: .folder) }
            switch number {
            case 0: return folders + ["a", "a"].map { Self.file($0) }
            case 1...17: return (0..<1_000).map { RemoteEntry(name: Array("skipped \(number) \($0)".utf8), kind: .symbolicLink) }
            case 18: return folders + [Self.file("a"), Self.file("f"), Self.file("b")]
            default: return nil
            }
        }
        #expect(error == nil && statistics.files == 3 && statistics.filesDone == 3)
        #expect(try fixture.names() == ["x", "x/a", "x/b", "x/f", "x/f/in"])
    }

    /// The queue must remove the entries that it has stored before the listing fails.
    @Test func restartsLongListingAfterLostConnection() async throws {
        let remainingBreaks = Locked(1)
        let (items, error, statistics) = try await download { _, number in
            switch number {
            case 0: return [Self.file("a")]
            case 1...17: return (0..<1_000).map { RemoteEntry(name: Array("skipped \(number) \($0)".utf8), kind: .symbolicLink) }
            case 18:
                let mustBreak = remainingBreaks.withLock { remainingBreaks in
                    remainingBreaks -= 1
                    return remainingBreaks >= 0
                }
                if mustBreak { throw TransferError(.transient, .connectionLost, "The connection broke.", retryAfter: .milliseconds(1)) }
                return [Self.file("b")]
            default: return nil
            }
        }
        #expect(error == nil && statistics.files == 2 && statistics.filesDone == 2)
        #expect(try fixture.names() == ["x", "x/a", "x/b"])
        #expect(Set(items.map(\.destination)).count == items.count)
    }

    @Test func limitsDepthOfFolders() async throws {
        let (items, error, statistics) = try await download { _, number in
            number == 0 ? [Self.file("file"), RemoteEntry(name: Array(String(repeating: "d", count: 200).utf8), kind: .folder)] : nil
        }
        // About 20 names of 200 bytes fit into a path of PATH_MAX bytes (4,096, limits.h).
        #expect(statistics.filesFailed == 1 && statistics.filesDone >= 19 && statistics.filesDone <= 21)
        let failure = items.first { $0.state == .failed }?.error
        #expect(failure?.message.contains(" makes the path too long: \"ddd") == true && error != nil)
    }

    @Test(arguments: [Int64.max, -1, 1 << 60, nil]) func ignoresImpossibleSizes(size: Int64?) async throws {
        let (items, error, statistics) = try await download { _, number in
            number == 0 ? (0..<3).map { Self.file("\($0)", size: size) } : nil
        }
        #expect(error == nil && statistics.bytesTotal == 21 && statistics.bytesDone == 21)
        #expect(items.map(\.bytesTotal) == [7, 7, 7])
    }

    @Test func ignoresSizesWithImpossibleSum() async throws {
        let (_, error, statistics) = try await download { _, number in
            number == 0 ? (0..<130).map { Self.file("\($0)", size: 1 << 56) } : nil
        }
        #expect(error == nil && statistics.bytesTotal == 910 && statistics.filesDone == 130)
    }

    @Test func doesNotFollowPlantedLinks() async throws {
        let outside = fixture.queue.folder.path.appending("outside")
        for folder in [outside, fixture.target.appending("x")] {
            try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: false)
        }
        try FileManager.default.createSymbolicLink(
            atPath: fixture.target.appending("x").appending("folder").string, withDestinationPath: outside.string)
        let (items, _, statistics) = try await download { folder, number in
            guard number == 0 else { return nil }
            return folder.description == "x" ? [Self.file("1"), RemoteEntry(name: Array("folder".utf8), kind: .folder)] : [Self.file("2")]
        }
        #expect(statistics.filesDone == 1 && statistics.filesFailed == 1)
        #expect(items.last?.error?.code == .unsafeName)
        #expect(try FileManager.default.contentsOfDirectory(atPath: outside.string).isEmpty)
    }
}
