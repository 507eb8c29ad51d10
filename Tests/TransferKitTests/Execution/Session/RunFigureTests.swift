import Locking
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct RunFigureTests {
    /// A random number generator with a seed, which makes failures reproducible.
    private struct SeededGenerator: RandomNumberGenerator {
        var state: UInt64

        mutating func next() -> UInt64 {
            // SplitMix64.
            state &+= 0x9E37_79B9_7F4A_7C15
            var value = state
            value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
            value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
            return value ^ (value >> 31)
        }
    }

    @Test(arguments: 1...8)
    func statisticsNeverDecrease(_ seed: UInt64) async throws {
        var generator = SeededGenerator(state: seed)
        let options = SessionOptions(retry: RetryPolicy(base: .zero, maximumAttempts: 1_000))
        let fixture = try await RunFixture(
            ["0": 9_000, "1": 0, "2": 20_000, "3": 1, "4": 7_777, "5": 15_000, "6": 3_000, "7": 12_000], hosts: ["x", "y"], options: options
        )
        for _ in 0..<60 {
            let name = "\(Int.random(in: 0..<8, using: &generator))"
            let fault: MemoryFault =
                Bool.random(using: &generator)
                ? .cut(afterBytes: Int64.random(in: 0...8_000, using: &generator))
                : .fail(TransferError(Bool.random(using: &generator) ? .transient : .unreachable, .connectionLost, "It broke."))
            fixture.memory.faults.append(fault, for: name)
        }
        let run = try await fixture.start()
        let live = try #require(fixture.liveRun.withLock { $0 })
        let watcher = Task {
            var last = live.statistics(at: .zero)
            while !Task.isCancelled {
                let now = live.statistics(at: .zero)
                #expect(now.bytesDone >= last.bytesDone && now.filesDone >= last.filesDone)
                #expect(now.bytesDone <= now.bytesSent && now.bytesSent <= now.bytesKnown)
                last = now
                await Task.yield()
            }
        }
        #expect(try await run.value?.hasSucceeded == true)
        watcher.cancel()
        await watcher.value
        let statistics = live.statistics(at: .seconds(2))
        #expect(statistics.filesDone == 8 && statistics.bytesDone == 66_778 && statistics.bytesSent == 66_778)
        #expect(statistics.secondsElapsed == 2)
        // At least 66,778 bytes in 2 s.
        #expect(statistics.averageRate ?? 0 >= 33_389)
        for name in 0..<8 { #expect(fixture.memory.contents(of: "\(name)") == (try fixture.content("\(name)"))) }
        await fixture.close()
    }

    @Test func includesTimeOfEarlierRuns() {
        let live = LiveRun(
            id: SessionID(), activation: 1, base: SessionStatistics(secondsElapsed: 60), options: SessionOptions(), at: .seconds(10))
        #expect(live.statistics(at: .seconds(13)).secondsElapsed == 63)
        #expect(live.statistics(at: .seconds(13)).averageRate == nil)
    }

    @Test func runUsesNewOptions() async throws {
        let fixture = try await RunFixture(["1": 10_000])
        fixture.memory.failNext(5, with: TransferError(.transient, .connectionLost, "It broke."))
        let run = try await fixture.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        let live = try #require(fixture.liveRun.withLock { $0 })
        live.update(SessionOptions(retry: RetryPolicy(maximumAttempts: 2)))
        fixture.clock.advance(by: .seconds(1))
        #expect(try await run.value?.failure?.code == .connectionLost)
        #expect(fixture.memory.attempts.count == 2)
        await fixture.close()
    }

    @Test func rateLimitsDetermineSizeOfReads() async throws {
        let fixture = try await RunFixture(["1": 1_000])
        let requests = Locked(0)
        fixture.allowance.withLock { allowance in
            allowance = { limit in
                let count = requests.withLock { requests in
                    requests += 1
                    return requests
                }
                return count.isMultiple(of: 2) ? Allowance(bytes: min(limit, 100)) : Allowance(bytes: 0, retryAfter: .zero)
            }
        }
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(requests.withLock { $0 } == 20)
        await fixture.close()
    }
}
