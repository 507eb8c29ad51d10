import Testing
import TransferCore
import TransferKit

@Suite struct MailboxTests {
    private let mailbox = Mailbox()
    private let clock = TestClock()

    private func post(_ position: Int64) {
        mailbox.postDeferrable(
            .report(
                RunEvent(
                    key: 1, run: 1,
                    content: .file(
                        position: position,
                        .completed(TransferReceipt(bytes: 0), endpoint: Endpoint(transport: "memory", address: "memory://a/"))))),
            clock: clock.engineClock)
    }

    private func positions() -> [Int64] {
        mailbox.take().compactMap {
            if case .report(let report) = $0.input, case .file(let position, _) = report.content { position } else { nil }
        }
    }

    /// Closes the mailbox, and returns whether the mailbox had already woken its reader. Closing keeps earlier wake-ups.
    private func hasWokenReader() async -> Bool {
        mailbox.close()
        for await _ in mailbox.wakeUps { return true }
        return false
    }

    @Test func deferrableReportsWaitForFullGroup() async {
        for position in Int64(0)..<63 { post(position) }
        #expect(await !hasWokenReader())
        #expect(positions() == Array(Int64(0)..<63))
    }

    @Test func fullGroupWakesReader() async {
        for position in Int64(0)..<64 { post(position) }
        #expect(await hasWokenReader())
    }

    @Test func wakesReaderAfterLongestDelay() async {
        post(0)
        await clock.waitForSleep(of: .milliseconds(20))
        clock.advance(by: .milliseconds(20))
        for await _ in mailbox.wakeUps { break }
        #expect(positions() == [0])
    }

    @Test func otherReportsFlushDeferredReportsInOrder() async {
        post(0)
        mailbox.post(.report(RunEvent(key: 1, run: 1, content: .file(position: 1, .size(1)))))
        post(2)
        #expect(await hasWokenReader())
        #expect(positions() == [0, 1, 2])
    }

    @Test func earlierDeadlineDoesNotWakeReaderForNextGroup() async {
        post(0)
        await clock.waitForSleep(of: .milliseconds(20))
        clock.advance(by: .milliseconds(15))
        #expect(positions() == [0])
        post(1)
        clock.advance(by: .milliseconds(5))
        await clock.waitForSleep(of: .milliseconds(15))
        clock.advance(by: .milliseconds(14))
        #expect(await !hasWokenReader())
    }

    @Test func nextGroupWakesReaderAtItsOwnDeadline() async {
        post(0)
        await clock.waitForSleep(of: .milliseconds(20))
        clock.advance(by: .milliseconds(15))
        #expect(positions() == [0])
        post(1)
        clock.advance(by: .milliseconds(5))
        await clock.waitForSleep(of: .milliseconds(15))
        clock.advance(by: .milliseconds(15))
        for await _ in mailbox.wakeUps { break }
        #expect(positions() == [1])
        // A report that arrives while no deadline is pending starts a new deadline.
        post(2)
        await clock.waitForSleep(of: .milliseconds(20))
        clock.advance(by: .milliseconds(20))
        for await _ in mailbox.wakeUps { break }
        #expect(positions() == [2])
    }
}
