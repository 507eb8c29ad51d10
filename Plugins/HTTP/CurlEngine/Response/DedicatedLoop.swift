import Locking
import TransferCore
import TransportSupport

/// A loop on a dedicated thread that runs one download at a time. The sink writes on this thread, so no other thread needs to be woken. A sink
/// that hangs blocks only this thread.
final class DedicatedLoop: Sendable {
    final class Reservation: Sendable {
        private struct State {
            /// The error that ended the caller's wait for the download; nil while the caller waits.
            var end: (any Error)?
            var isWriting = false
        }

        private let state = Locked(State())

        /// Whether the caller no longer waits for the download.
        var isOver: Bool { state.withLock { $0.end != nil } }

        /// Marks the start of a write by the sink. Call ``endWriting()`` after the write.
        ///
        /// - Throws: The error that ended the caller's wait, if the caller no longer waits.
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
    private let reservation = Locked<(reservation: Reservation, outcome: SingleResult<PendingRequest.Outcome>)?>(nil)

    init(_ mailbox: LoopMailbox) {
        self.mailbox = mailbox
    }

    /// Reserves the loop for a download.
    ///
    /// - Returns: The reservation; nil if another download uses the loop.
    func reserve(for outcome: SingleResult<PendingRequest.Outcome>) -> Reservation? {
        reservation.withLock { current in
            guard current == nil else { return nil }
            let reservation = Reservation()
            current = (reservation, outcome)
            return reservation
        }
    }

    func release() { reservation.withLock { $0 = nil } }

    /// Ends the download and the thread. If the sink is writing, this method does not wait for the thread, because the write may never return.
    func shutdown() async {
        let isWriting = reservation.withLock { current in
            guard let current, current.reservation.end(with: CurlEngineError.shutDown) else { return false }
            current.outcome.resume(.failure(CurlEngineError.shutDown))
            return true
        }
        mailbox.post(.stop)
        if !isWriting { await mailbox.waitUntilEnded() }
    }
}
