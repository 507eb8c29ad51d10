import Locking
import Testing
import TransferKit

@Suite struct RateMeterTests {
    @Test func measuresSteadyRate() throws {
        var meter = RateMeter()
        #expect(meter.rate == nil)
        for tick in 0..<100 { meter.sample(bytes: Int64(tick) * 100, at: .milliseconds(100 * tick)) }
        let rate = try #require(meter.rate)
        #expect(abs(rate - 1_000) < 1e-6)
    }

    /// A rate limit lets a first burst pass immediately.
    @Test func averagesFirstBurstOverTime() throws {
        var meter = RateMeter()
        meter.sample(bytes: 0, at: .zero)
        meter.sample(bytes: 1_000, at: .milliseconds(100))
        for tick in 2...20 { meter.sample(bytes: 1_000 + Int64(tick - 1) * 100, at: .milliseconds(100 * tick)) }
        let rate = try #require(meter.rate)
        #expect(abs(rate - 2_900 / 2) < 1e-6)
    }

    /// During the first half second, the first burst distorts the rate.
    @Test func becomesReliableAfterHalfSecond() {
        var meter = RateMeter()
        for tick in 0..<5 { meter.sample(bytes: 1_000, at: .milliseconds(100 * tick)) }
        #expect(!meter.isReliable)
        meter.sample(bytes: 1_000, at: .milliseconds(500))
        #expect(meter.isReliable)
    }

    @Test func forgetsOldRate() throws {
        var meter = RateMeter()
        for tick in 0...10 { meter.sample(bytes: Int64(tick) * 1_000, at: .milliseconds(100 * tick)) }
        for tick in 11...310 { meter.sample(bytes: 10_000, at: .milliseconds(100 * tick)) }
        #expect(try #require(meter.rate) < 1)
    }
}

@Suite struct StallWatchTests {
    private func watch(_ file: ActiveFile) -> StallWatch {
        StallWatch(file, stallTimeout: .seconds(60), responseTimeout: .seconds(300), at: .zero)
    }

    private func stalls(_ watch: inout StallWatch, _ file: ActiveFile, _ uptime: Duration) -> Bool {
        watch.sample(file, at: uptime)
    }

    /// Before its start, an attempt waits only for this process, for example for a slow database.
    @Test func attemptBeforeStartDoesNotStall() {
        let file = ActiveFile(position: 0, size: 10, start: 0)
        let ends = Locked(0)
        var watch = StallWatch(file, stallTimeout: .seconds(60), responseTimeout: .seconds(300), at: .zero)
        if watch.sample(file, at: .seconds(100)) { file.stall() }
        #expect(!file.isStalled)
        file.whenStalled { ends.withLock { $0 += 1 } }
        if watch.sample(file, at: .seconds(100)) { file.stall() }
        #expect(!file.isStalled && ends.withLock { $0 } == 0)
        if watch.sample(file, at: .seconds(160)) { file.stall() }
        #expect(file.isStalled && ends.withLock { $0 } == 1)
    }

    @Test func fileWithoutProgressStalls() {
        let file = ActiveFile(position: 0, size: 100, start: 0)
        var watch = watch(file)
        #expect(!stalls(&watch, file, .seconds(59)))
        #expect(stalls(&watch, file, .seconds(60)))
    }

    @Test func slowFileDoesNotStall() {
        let file = ActiveFile(position: 0, size: 100, start: 0)
        var watch = watch(file)
        for minute in 1...10 {
            file.report(sent: Int64(minute), confirmed: 0)
            #expect(!stalls(&watch, file, .seconds(59 * minute)))
        }
        #expect(stalls(&watch, file, .seconds(59 * 10 + 60)))
    }

    /// The stall timeout applies again once bytes move.
    @Test(arguments: [true, false]) func responseTimeoutAppliesAfterPartialRequest(moves: Bool) {
        let file = ActiveFile(position: 0, size: 100, start: 0)
        var watch = watch(file)
        file.report(sent: 50, confirmed: 0)
        file.noteAwaitedResponse()
        #expect(!stalls(&watch, file, .seconds(1)))
        #expect(!stalls(&watch, file, .seconds(300)))
        if moves { file.report(sent: 51, confirmed: 50) }
        #expect(stalls(&watch, file, .seconds(301)) == !moves)
        if moves { #expect(!stalls(&watch, file, .seconds(302)) && stalls(&watch, file, .seconds(361))) }
    }

    @Test func responseTimeoutAppliesAfterLastByte() {
        let file = ActiveFile(position: 0, size: 2 << 20, start: 0)
        var watch = watch(file)
        file.report(sent: 2 << 20, confirmed: 0)
        #expect(!stalls(&watch, file, .seconds(1)))
        #expect(!stalls(&watch, file, .seconds(300)))
        #expect(stalls(&watch, file, .seconds(301)))
    }

    /// An attempt that resumes after all bytes were sent begins with small requests. The response timeout applies only if the transport
    /// reports that it waits for a response.
    @Test(arguments: [true, false]) func responseTimeoutDoesNotApplyToFirstRequestOfCompleteFile(reportsWaiting: Bool) {
        let file = ActiveFile(position: 0, size: 2 << 20, start: 2 << 20)
        var watch = watch(file)
        file.report(sent: 2 << 20, confirmed: 2 << 20)
        if reportsWaiting { file.noteAwaitedResponse() }
        #expect(!stalls(&watch, file, .seconds(59)))
        #expect(stalls(&watch, file, .seconds(60)) == !reportsWaiting)
        #expect(stalls(&watch, file, .seconds(300)))
    }

    /// A resumed attempt that sends the last byte of a file waits while the server processes the whole file.
    @Test func responseTimeoutAppliesAfterLastByteOfResumedFile() {
        let file = ActiveFile(position: 0, size: 2 << 20, start: (2 << 20) - 1)
        var watch = watch(file)
        file.report(sent: 2 << 20, confirmed: (2 << 20) - 1)
        #expect(!stalls(&watch, file, .seconds(1)))
        #expect(!stalls(&watch, file, .seconds(300)))
        #expect(stalls(&watch, file, .seconds(301)))
    }

    /// A server needs no extra time to process a small or empty file.
    @Test(arguments: [0, 1 << 20]) func responseTimeoutDoesNotApplyToSmallFile(size: Int64) {
        let file = ActiveFile(position: 0, size: size, start: 0)
        var watch = watch(file)
        file.report(sent: size, confirmed: 0)
        #expect(!stalls(&watch, file, .seconds(1)))
        #expect(!stalls(&watch, file, .seconds(59)))
        #expect(stalls(&watch, file, .seconds(61)))
    }

    @Test(arguments: [true, false]) func responseTimeoutAppliesOnlyAfterAllContentIsSentAgain(isAllSent: Bool) {
        let file = ActiveFile(position: 0, size: 2 << 20, start: 0)
        var watch = watch(file)
        file.report(sent: 2 << 20, confirmed: 0)
        #expect(!stalls(&watch, file, .seconds(100)))
        file.noteWork()
        #expect(!stalls(&watch, file, .seconds(101)))
        if isAllSent { file.noteAwaitedResponse() }
        #expect(stalls(&watch, file, .seconds(162)) == !isAllSent)
    }

    @Test func rateLimitedFileDoesNotStall() {
        let file = ActiveFile(position: 0, size: 100, start: 0)
        var watch = watch(file)
        for minute in 1...10 {
            file.noteRateLimit()
            #expect(!stalls(&watch, file, .seconds(60 * minute)))
        }
        #expect(stalls(&watch, file, .seconds(660)))
    }

    @Test func activeFileDoesNotStall() {
        let file = ActiveFile(position: 0, size: 100, start: 0)
        var watch = watch(file)
        for minute in 1...10 {
            file.noteWork()
            #expect(!stalls(&watch, file, .seconds(60 * minute)))
        }
        #expect(stalls(&watch, file, .seconds(660)))
    }

    @Test func bytesSentAgainPreventStall() {
        let file = ActiveFile(position: 0, size: 100, start: 0, floor: 50)
        var watch = watch(file)
        file.report(sent: 10, confirmed: 0)
        #expect(!stalls(&watch, file, .seconds(60)))
    }

    @Test func byteCountsNeverDecrease() {
        let file = ActiveFile(position: 0, size: 100, start: 10)
        #expect(file.sent == 10 && file.confirmed == 10)
        file.report(sent: 50, confirmed: 20)
        file.report(sent: 5, confirmed: 5)
        #expect(file.sent == 50 && file.confirmed == 20)
        file.report(sent: 1_000, confirmed: 1_000)
        #expect(file.sent == 100 && file.confirmed == 100)
    }
}
