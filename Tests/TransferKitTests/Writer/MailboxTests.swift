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

    /// Whether the bell rang: once closed, the stream ends after its contents.
    private func rang() async -> Bool {
        mailbox.close()
        for await _ in mailbox.rings { return true }
        return false
    }

    @Test func deferrableReportsWaitForOthers() async {
        for position in Int64(0)..<63 { post(position) }
        #expect(await !rang())
        #expect(positions() == Array(Int64(0)..<63))
    }

    @Test func fullGroupRings() async {
        for position in Int64(0)..<64 { post(position) }
        #expect(await rang())
    }

    @Test func ringsAfterLongestDelay() async {
        post(0)
        await clock.sleeps(for: .milliseconds(20))
        clock.advance(by: .milliseconds(20))
        for await _ in mailbox.rings { break }
        #expect(positions() == [0])
    }

    @Test func otherReportsTakeDeferredOnesAlongInOrder() async {
        post(0)
        mailbox.post(.report(RunEvent(key: 1, run: 1, content: .file(position: 1, .size(1)))))
        post(2)
        #expect(await rang())
        #expect(positions() == [0, 1, 2])
    }

    @Test func earlierDeadlineDoesNotRingForNextGroup() async {
        post(0)
        await clock.sleeps(for: .milliseconds(20))
        clock.advance(by: .milliseconds(15))
        #expect(positions() == [0])
        post(1)
        clock.advance(by: .milliseconds(5))
        await clock.sleeps(for: .milliseconds(15))
        clock.advance(by: .milliseconds(14))
        #expect(await !rang())
    }

    @Test func nextGroupRingsAtItsOwnDeadline() async {
        post(0)
        await clock.sleeps(for: .milliseconds(20))
        clock.advance(by: .milliseconds(15))
        #expect(positions() == [0])
        post(1)
        clock.advance(by: .milliseconds(5))
        await clock.sleeps(for: .milliseconds(15))
        clock.advance(by: .milliseconds(15))
        for await _ in mailbox.rings { break }
        #expect(positions() == [1])
        // And one that arrives when nothing is awaited.
        post(2)
        await clock.sleeps(for: .milliseconds(20))
        clock.advance(by: .milliseconds(20))
        for await _ in mailbox.rings { break }
        #expect(positions() == [2])
    }
}
