import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct StatementCountTests {
    /// Files that complete at about the same time share a commit, and most statements are needed once for each commit, not for each file.
    @Test func executesFewStatementsForEachSmallFile() async throws {
        let fixture = try QueueFixture()
        let counts = Locked((statements: 0, commits: 0))
        let queue = try await fixture.open(storeObserver: { step in
            guard case .after(let statement) = step else { return }
            counts.withLock {
                $0.statements += 1
                if statement.hasPrefix("COMMIT") { $0.commits += 1 }
            }
        })
        try await queue.save(Account("a", endpoints: [fixture.memory.endpoint(host: "a")]))
        let files = 1_000
        let paths = try (0..<files).map { try fixture.folder.file("\($0)", size: 10) }
        let session = try await queue.enqueue(.upload(paths, to: "a"))
        counts.withLock { $0 = (0, 0) }
        try await queue.start()
        let result = try await session.value
        #expect(result.statistics.filesDone == files)
        let (statements, commits) = counts.withLock { $0 }
        print("\(files) small files: \(statements) statements in \(commits) commits")
        #expect(statements <= 25 * files && commits <= 3 * files / 2, "\(statements) statements, \(commits) commits")
        await queue.shutdown()
    }
}
