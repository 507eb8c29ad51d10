import Locking
import TransferCore
import TransportSupport

/// A dedicated loop that runs one download at a time. The sink writes on the loop's own thread, which avoids waking another thread. A sink
/// that hangs blocks only that thread.
final class DownloadLane: Sendable {
    /// One download's use of a lane.
    final class Turn: Sendable {
        private struct State {
            /// The reason why the caller no longer waits; nil while the caller waits.
            var end: (any Error)?
            var isWriting = false
        }

        private let state = Locked(State())

        /// Whether the caller no longer waits for the download.
        var isOver: Bool { state.withLock { $0.end != nil } }

        /// Marks the start of a write by the sink. Call ``endWriting()`` after the write.
        ///
        /// - Throws: The reason why the caller stopped waiting, if it no longer waits.
        func beginWriting() throws {
            try state.withLock { state in
                if let end = state.end { throw end }
                state.isWriting = true
            }
        }

        func endWriting() { state.withLock { $0.isWriting = false } }

        /// Prevents the sink from starting another write.
        ///
        /// - Returns: Whether a write is running.
        @discardableResult func end(with error: any Error) -> Bool {
            state.withLock { state in
                state.end = state.end ?? error
                return state.isWriting
            }
        }
    }

    let mailbox: LoopMailbox
    private let turn = Locked<(turn: Turn, outcome: Once<PendingRequest.Outcome>)?>(nil)

    init(_ mailbox: LoopMailbox) {
        self.mailbox = mailbox
    }

    /// Reserves the lane for a download.
    ///
    /// - Returns: The download's use of the lane; nil if another download uses the lane.
    func take(for outcome: Once<PendingRequest.Outcome>) -> Turn? {
        turn.withLock { present in
            guard present == nil else { return nil }
            let turn = Turn()
            present = (turn, outcome)
            return turn
        }
    }

    func giveBack() { turn.withLock { $0 = nil } }

    /// Ends the download and the thread. If the sink is writing, this method does not wait for the thread, because the write may never return.
    func shutdown() async {
        let isWriting = turn.withLock { present in
            guard let present, present.turn.end(with: CurlEngineError.shutDown) else { return false }
            present.outcome.resume(.failure(CurlEngineError.shutDown))
            return true
        }
        mailbox.post(.stop)
        if !isWriting { await mailbox.waitUntilEnded() }
    }
}
