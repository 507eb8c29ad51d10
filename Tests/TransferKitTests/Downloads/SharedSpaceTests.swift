import Foundation
import SystemPackage
import Testing
import TransferCore
import TransferKit
import TransportTesting

#if canImport(Glibc)
    import Glibc

    /// Requires root, because the tests mount a file system.
    @Suite(.enabled(if: geteuid() == 0)) struct SharedSpaceTests {
        private static let size = 2 << 20

        @Test func secondSessionWaitsForFirst() async throws {
            let fixture = try DownloadFixture()
            let target = fixture.target.string
            try #require(unsafe mount("tmpfs", target, "tmpfs", 0, "size=3m,mode=700") == 0)
            defer { _ = unsafe umount2(target, CInt(MNT_DETACH)) }
            let queue = try await fixture.queue.openWithAccounts()
            try await queue.setMaxConcurrentSessions(2)
            let gate = fixture.memory.gate("1", atByte: 1_000_000)
            let first = try await queue.enqueue(try fixture.request("1", size: Self.size))
            let second = try await queue.enqueue(try fixture.request("2", size: Self.size), held: true)
            try await queue.start()
            try await gate.reached()
            try await second.release()
            while true {
                if case .noSpace = try await second.status.why { break }
                await Task.yield()
            }
            gate.open()
            #expect(try await first.value.state == .completed)
            #expect(fixture.content("1") == DownloadFixture.content(Self.size))
            try FileManager.default.removeItem(atPath: fixture.target.appending("1").string)
            // The queue also sleeps for 30 seconds for other reasons, so the test can't wait for the sleep before the next check of the
            // free space.
            while try await second.status.state != .completed {
                if case .noSpace = try await second.status.why { fixture.queue.clock.advance(by: .seconds(30)) }
                await Task.yield()
            }
            #expect(fixture.content("2") == DownloadFixture.content(Self.size))
            await queue.shutdown()
        }

        @Test func secondSessionStartsAfterFirstIsCancelled() async throws {
            let fixture = try DownloadFixture()
            let target = fixture.target.string
            try #require(unsafe mount("tmpfs", target, "tmpfs", 0, "size=3m,mode=700") == 0)
            defer { _ = unsafe umount2(target, CInt(MNT_DETACH)) }
            let queue = try await fixture.queue.openWithAccounts()
            try await queue.setMaxConcurrentSessions(2)
            let gate = fixture.memory.gate("1", atByte: 1_000_000)
            let first = try await queue.enqueue(try fixture.request("1", size: Self.size))
            let second = try await queue.enqueue(try fixture.request("2", size: Self.size), held: true)
            try await queue.start()
            try await gate.reached()
            try await second.release()
            while true {
                if case .noSpace = try await second.status.why { break }
                await Task.yield()
            }
            fixture.queue.clock.advance(by: .seconds(10))
            try await first.cancel(discarding: true)
            gate.open()
            while try await first.status.state != .cancelled { await Task.yield() }
            while try fixture.partFiles() != [] { await Task.yield() }
            // The queue checks the space for the second session again within 5 s.
            let end = Task { await queue.waitUntilIdle() }
            fixture.queue.clock.advance(by: .seconds(6))
            await end.value
            #expect(try await second.status.state == .completed)
            #expect(fixture.content("2") == DownloadFixture.content(Self.size))
            await queue.shutdown()
        }

        @Test func resumedDownloadUsesItsReservedSpace() async throws {
            let fixture = try DownloadFixture()
            let target = fixture.target.string
            try #require(unsafe mount("tmpfs", target, "tmpfs", 0, "size=3m,mode=700") == 0)
            defer { _ = unsafe umount2(target, CInt(MNT_DETACH)) }
            let queue = try await fixture.queue.openWithAccounts()
            let gate = fixture.memory.gate("1", atByte: 500_000)
            let session = try await queue.enqueue(try fixture.request("1", size: Self.size))
            try await queue.start()
            try await gate.reached()
            _ = try await session.pause()
            gate.open()
            try await session.resume()
            #expect(try await session.value.state == .completed)
            #expect(fixture.content("1") == DownloadFixture.content(Self.size))
            await queue.shutdown()
        }

        @Test func oneFileCompletesIfSpaceSufficesForOne() async throws {
            let fixture = try DownloadFixture()
            let target = fixture.target.string
            try #require(unsafe mount("tmpfs", target, "tmpfs", 0, "size=3m,mode=700") == 0)
            defer { _ = unsafe umount2(target, CInt(MNT_DETACH)) }
            let queue = try await fixture.queue.openWithAccounts()
            let gates = ["1", "2"].map { (name: $0, gate: fixture.memory.gate($0, atByte: 1_000_000)) }
            let session = try await queue.enqueue(
                try fixture.request("1", "2", size: Self.size, options: SessionOptions(filesInFlight: 2)))
            try await queue.start()
            // Either file may reserve the space first.
            let (first, gate) = try await withThrowingTaskGroup(of: (String, MemoryGate).self) { group in
                for (name, gate) in gates {
                    group.addTask {
                        try await gate.reached()
                        return (name, gate)
                    }
                }
                defer { group.cancelAll() }
                return try #require(try await group.next())
            }
            while try await session.status.error?.code != .diskFull { await Task.yield() }
            gate.open()
            while fixture.content(first) == nil { _ = try await session.status }
            #expect(fixture.content(first) == DownloadFixture.content(Self.size))
            #expect(fixture.memory.attempts.count { $0.path.description == first } == 1)
            // The queue retries the other file as soon as the first file is complete, without waiting for the retry delay.
            var why: WaitReason?
            repeat { why = try await session.status.why } while why == nil
            if case .noSpace? = why {} else { Issue.record("\(String(describing: why))") }
            await queue.shutdown()
        }
    }
#endif
