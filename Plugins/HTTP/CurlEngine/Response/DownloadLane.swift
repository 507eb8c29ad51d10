import Locking
import TransferCore
import TransportSupport

/// A loop that carries one download at a time, whose sink writes on the loop's own thread: no other thread is woken. If the
/// sink hangs, it is this thread that does, and nobody else waits for it.
final class DownloadLane: Sendable {
    /// A download's time on a lane.
    final class Turn: Sendable {
        private struct State {
            /// Why the caller does not wait any more.
            var end: (any Error)?
            var isWriting = false
        }

        private let state = Locked(State())

        /// Whether the caller is not waiting any more.
        var isOver: Bool { state.withLock { $0.end != nil } }

        /// The sink is about to write.
        ///
        /// - Throws: Why it may not, once the caller is not waiting any more.
        func beginWriting() throws {
            try state.withLock { state in
                if let end = state.end { throw end }
                state.isWriting = true
            }
        }

        func endWriting() { state.withLock { $0.isWriting = false } }

        /// Lets the sink begin no further write.
        ///
        /// - Returns: Whether it is at one.
        @discardableResult func end(with error: any Error) -> Bool {
            state.withLock { state in
                state.end = state.end ?? error
                return state.isWriting
            }
        }
    }

    let mailbox: LoopMailbox
    private let turn = Locked<(turn: Turn, outcome: Once<TransferOrder.Outcome>)?>(nil)

    init(_ mailbox: LoopMailbox) {
        self.mailbox = mailbox
    }

    /// - Returns: Nil if another download is on it.
    func take(for outcome: Once<TransferOrder.Outcome>) -> Turn? {
        turn.withLock { present in
            guard present == nil else { return nil }
            let turn = Turn()
            present = (turn, outcome)
            return turn
        }
    }

    func giveBack() { turn.withLock { $0 = nil } }

    /// Ends what is on it, and its thread: at once, or if the sink is at a write, as soon as that has ended, which may be never.
    func shutdown() async {
        let isWriting = turn.withLock { present in
            guard let present, present.turn.end(with: CurlEngineError.shutDown) else { return false }
            present.outcome.resume(.failure(CurlEngineError.shutDown))
            return true
        }
        mailbox.post(.stop)
        if !isWriting { await mailbox.waitUntilClosed() }
    }
}
