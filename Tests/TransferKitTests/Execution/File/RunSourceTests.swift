import Foundation
import Locking
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RunSourceTests {
    private let size = Int(FileWindow.smallSize) * 2

    /// Sends the first bytes of a file, changes the file while the session waits for its retry, and then resumes.
    private func run(
        size: Int, cut: Int64, onSourceChange: SessionOptions.SourceChangePolicy = .fail, _ change: (RunFixture, FilePath) throws -> Void
    ) async throws -> (RunFixture, RunOutcome?) {
        let memory = MemoryTransport(chunkSize: 1 << 18)
        let fixture = try await RunFixture(["1": size], options: SessionOptions(onSourceChange: onSourceChange), memory: memory)
        memory.faults.append(.cut(afterBytes: cut))
        let run = try await fixture.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        try change(fixture, fixture.folder.path.appending("1"))
        fixture.clock.advance(by: .seconds(1))
        return (fixture, try await run.value)
    }

    @Test func newContentFailsOrRestartsFile() async throws {
        for policy in [SessionOptions.SourceChangePolicy.fail, .restart] {
            let (fixture, outcome) = try await run(size: 10_000, cut: 5_000, onSourceChange: policy) { fixture, _ in
                _ = try fixture.folder.file("1", Data(repeating: 9, count: 12_345))
            }
            if policy == .fail {
                #expect(outcome?.failure?.failureClass == .sourceChanged)
                #expect(fixture.memory.contents(of: "1") == nil)
            } else {
                #expect(outcome?.hasSucceeded == true)
                #expect(fixture.memory.contents(of: "1") == Data(repeating: 9, count: 12_345))
                #expect(fixture.eventNames.contains("restarted"))
                let statistics = try #require(try await fixture.store.sessions([1]).first).status.statistics
                #expect(statistics.bytesTotal == 12_345 && statistics.bytesDone == 12_345)
                #expect(fixture.liveRun.withLock { $0 }?.statistics(at: .seconds(1)).bytesDone == 12_345)
            }
            await fixture.close()
        }
    }

    @Test func limitsRestartsOfChangingFile() async throws {
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 3), onSourceChange: .restart)
        let fixture = try await RunFixture(["1": 10], options: options)
        fixture.memory.failNext(100, with: TransferError(.sourceChanged, .sourceChanged, "It changed."))
        #expect(try await fixture.run()?.failure?.code == .sourceChanged)
        #expect(fixture.memory.attempts.count == 4)
        await fixture.close()
    }

    @Test func resumesWithIdenticalReplacement() async throws {
        let (fixture, outcome) = try await runReplacingFile(size: size, cut: Int64(size) / 4 * 3 + 1) { _ in }
        #expect(outcome?.hasSucceeded == true)
        #expect(!fixture.eventNames.contains("restarted"))
        #expect(fixture.memory.attempts.last?.startOffset ?? 0 > FileWindow.smallSize)
        #expect(fixture.memory.contents(of: "1") == (try fixture.content("1")))
        await fixture.close()
    }

    @Test func detectsDifferentContentWithSameSizeAndTime() async throws {
        let (fixture, outcome) = try await runReplacingFile(size: size, cut: Int64(size) / 4 * 3 + 1) { $0[$0.startIndex + 100] ^= 1 }
        #expect(outcome?.failure?.failureClass == .sourceChanged)
        #expect(fixture.memory.contents(of: "1") == nil)
        await fixture.close()
    }

    @Test func restartsReplacedSmallFile() async throws {
        let (fixture, outcome) = try await runReplacingFile(size: 10_000, cut: 5_000, chunkSize: 1_000) { _ in }
        #expect(outcome?.hasSucceeded == true)
        #expect(fixture.eventNames.contains("restarted"))
        #expect(fixture.memory.attempts.last?.startOffset == 0)
        #expect(fixture.memory.contents(of: "1") == (try fixture.content("1")))
        await fixture.close()
    }

    /// Like ``run(size:cut:onSourceChange:_:)``, but replaces the file with one of the same size and modification time. The original gets a
    /// time in whole seconds, which the replacement can reproduce exactly.
    private func runReplacingFile(size: Int, cut: Int64, chunkSize: Int = 1 << 18, _ edit: (inout Data) -> Void) async throws -> (
        RunFixture, RunOutcome?
    ) {
        let memory = MemoryTransport(chunkSize: chunkSize)
        let fixture = try await RunFixture(["1": size], memory: memory)
        let path = fixture.folder.path.appending("1").string
        let date = Date(timeIntervalSince1970: 1_000_000_000)
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path)
        memory.faults.append(.cut(afterBytes: cut))
        let run = try await fixture.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        var content = try Data(contentsOf: URL(fileURLWithPath: path))
        edit(&content)
        try content.write(to: URL(fileURLWithPath: path + ".new"))
        try FileManager.default.setAttributes([.modificationDate: date], ofItemAtPath: path + ".new")
        let before = try SourceIdentity(ofFileAt: FilePath(path))
        let after = try SourceIdentity(ofFileAt: FilePath(path + ".new"))
        #expect(after.difference(from: before) == .fileReplaced)
        #expect(unsafe rename(path + ".new", path) == 0)
        fixture.clock.advance(by: .seconds(1))
        return (fixture, try await run.value)
    }
}
