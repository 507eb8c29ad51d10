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

    /// Closes the mailbox, and returns whether it had notified ("rung") its reader before. Closing does not discard earlier rings.
    private func hasRung() async -> Bool {
        mailbox.close()
        for await _ in mailbox.rings { return true }
        return false
    }

    @Test func deferrableReportsWaitForFullGroup() async {
        for position in Int64(0)..<63 { post(position) }
        #expect(await !hasRung())
        #expect(positions() == Array(Int64(0)..<63))
    }

    @Test func fullGroupRings() async {
        for position in Int64(0)..<64 { post(position) }
        #expect(await hasRung())
    }

    @Test func ringsAfterLongestDelay() async {
        post(0)
        await clock.waitForSleep(of: .milliseconds(20))
        clock.advance(by: .milliseconds(20))
        for await _ in mailbox.rings { break }
        #expect(positions() == [0])
    }

    @Test func otherReportsFlushDeferredReportsInOrder() async {
        post(0)
        mailbox.post(.report(RunEvent(key: 1, run: 1, content: .file(position: 1, .size(1)))))
        post(2)
        #expect(await hasRung())
        #expect(positions() == [0, 1, 2])
    }

    @Test func earlierDeadlineDoesNotRingForNextGroup() async {
        post(0)
        await clock.waitForSleep(of: .milliseconds(20))
        clock.advance(by: .milliseconds(15))
        #expect(positions() == [0])
        post(1)
        clock.advance(by: .milliseconds(5))
        await clock.waitForSleep(of: .milliseconds(15))
        clock.advance(by: .milliseconds(14))
        #expect(await !hasRung())
    }

    @Test func nextGroupRingsAtItsOwnDeadline() async {
        post(0)
        await clock.waitForSleep(of: .milliseconds(20))
        clock.advance(by: .milliseconds(15))
        #expect(positions() == [0])
        post(1)
        clock.advance(by: .milliseconds(5))
        await clock.waitForSleep(of: .milliseconds(15))
        clock.advance(by: .milliseconds(15))
        for await _ in mailbox.rings { break }
        #expect(positions() == [1])
        // A report that arrives while no deadline is pending starts a new deadline.
        post(2)
        await clock.waitForSleep(of: .milliseconds(20))
        clock.advance(by: .milliseconds(20))
        for await _ in mailbox.rings { break }
        #expect(positions() == [2])
    }
}
