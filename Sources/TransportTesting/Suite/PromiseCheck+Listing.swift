import Foundation
import Locking
import TransferCore

extension PromiseCheck where Fixture: ListingFixture {
    private typealias Receiver = @Sendable ([RemoteEntry]) async throws -> Void

    func entriesAreComplete() async throws {
        let folder = UUID().uuidString
        var expected: Set<RemoteEntry> = []
        for size in [0, 1, 70_000] {
            try await provide(size, as: "\(folder)/file-\(size)")
            expected.insert(RemoteEntry(name: Array("file-\(size)".utf8), kind: .file(size: Int64(size))))
        }
        try await provide(10, as: "\(folder)/inside/deeper/file")
        try await fixture.makeFolder(try makePath("\(folder)/empty"))
        for name in ["inside", "empty"] { expected.insert(RemoteEntry(name: Array(name.utf8), kind: .folder)) }
        try require(expected, are: try await entries(of: folder))
    }

    func largeFolderIsComplete() async throws {
        let folder = UUID().uuidString
        // The folder has more entries than a typical SFTP server sends in one response.
        for number in 0..<1_500 { try await provide(1, as: "\(folder)/\(number)") }
        let expected = (0..<1_500).map { RemoteEntry(name: Array("\($0)".utf8), kind: .file(size: 1)) }
        try require(Set(expected), are: try await entries(of: folder))
    }

    func namesAreKept() async throws {
        let folder = "a folder's \"name\" ünï \(UUID().uuidString)"
        let names = ["-n", "two\nlines", "ünïcode 🎬", "*?[a]", "back\\slash", String(repeating: "n", count: 200), "...", " "]
        for name in names { try await provide(3, as: "\(folder)/\(name)") }
        let expected = names.map { RemoteEntry(name: Array($0.utf8), kind: .file(size: 3)) }
        try require(Set(expected), are: try await entries(of: folder))
    }

    func emptyFolderIsEmpty() async throws {
        let folder = UUID().uuidString
        try await fixture.makeFolder(try makePath(folder))
        try require([], are: try await entries(of: folder))
    }

    func missingFolderIsPermanent() async throws {
        let file = UUID().uuidString
        try await provide(10, as: file)
        for (name, situation) in [(UUID().uuidString, "When there is no such folder"), (file, "When there is a file of that name")] {
            let error = try await failure(situation) { try await list(name) { _ in } }
            try require(
                error.failureClass == .permanent && error.code == .noSuchRemoteFile,
                "\(situation), the error is of class \(error.failureClass), with the code \(error.code): \(error)")
        }
    }

    func receiverEndsListing() async throws {
        let folder = UUID().uuidString
        try await provide(10, as: "\(folder)/file")
        let own = TransferError(.permanent, .unsafeName, "The receiver ends the listing.")
        let error = try await failure("When the receiver threw an error") { try await list(folder) { _ in throw own } }
        try require(error == own, "The listing did not throw the receiver's error, but: \(error)")
    }

    func listingCancellationEnds() async throws {
        let folder = UUID().uuidString
        for number in 0..<1_000 { try await provide(1, as: "\(folder)/\(number)") }
        let (arrived, released) = (Latch(), Latch())
        let running = try start(folder) { _ in
            arrived.open()
            // Throws an error, because the task is cancelled before the latch opens.
            try await released.wait()
        }
        try await running.waitUntilReached(arrived, within: deadline, of: self)
        running.task.cancel()
        released.open()
        do {
            _ = try await running.value(within: deadline, of: self)
        } catch is CancellationError {
            return
        } catch let violation as PromiseViolation {
            throw violation
        } catch {
            throw violation("When it was cancelled, the listing threw \(type(of: error)) instead of a CancellationError: \(error)")
        }
        throw violation("When it was cancelled, the listing continued to its end.")
    }

    func refusedListingIsUnreachable() async throws {
        try await expect(.unreachable, "When the connection was refused") {
            try await list(UUID().uuidString, at: fixture.unreachableEndpoint) { _ in }
        }
    }

    // MARK: Listings

    private func provide(_ size: Int, as name: String) async throws {
        try await fixture.provide(Self.content(size, seed: 1), as: try makePath(name))
    }

    /// Lists a folder, and returns its entries without `.` and `..`.
    private func entries(of folder: String) async throws -> [RemoteEntry] {
        let listed = Locked<[RemoteEntry]>([])
        try await list(folder) { entries in listed.withLock { $0 += entries } }
        return listed.withLock { $0 }.filter { ![Array(".".utf8), Array("..".utf8)].contains($0.name) }
    }

    private func require(_ expected: Set<RemoteEntry>, are listed: [RemoteEntry]) throws {
        func text(_ entries: some Sequence<RemoteEntry>) -> String {
            entries.prefix(5).map { "\(String(decoding: $0.name, as: UTF8.self)) as \($0.kind)" }.joined(separator: ", ")
        }
        let (missing, extra) = (expected.subtracting(listed), Set(listed).subtracting(expected))
        try require(missing.isEmpty && extra.isEmpty, "Missing: \(text(missing)). Unexpected: \(text(extra)).")
        try require(listed.count == expected.count, "\(listed.count - expected.count) entries are listed twice.")
    }

    @discardableResult
    private func list(_ folder: String, at endpoint: Endpoint? = nil, _ receive: @escaping Receiver) async throws -> TransferReceipt {
        try await start(folder, at: endpoint, receive).value(within: deadline, of: self)
    }

    private func start(_ folder: String, at endpoint: Endpoint? = nil, _ receive: @escaping Receiver) throws -> RunningAttempt {
        let attempt = ListingAttempt(
            endpoint: endpoint ?? fixture.endpoint, remotePath: try makePath(folder), options: fixture.options,
            credentials: fixture.credentials, logger: Self.logger)
        guard let transport = fixture.transport as? any FolderListing else {
            throw violation("The transport does not conform to FolderListing.")
        }
        return RunningAttempt(
            task: Task {
                try await transport.list(attempt, receive: receive)
                return TransferReceipt(bytes: 0)
            })
    }
}
