import Locking
import TransferCore

/// What happened to the files of sessions in their earlier runs of this process.
final class RunHistories: Sendable {
    private let histories = Locked<[SessionKey: [Int64: FileHistory]]>([:])

    func of(_ key: SessionKey) -> [Int64: FileHistory] {
        histories.withLock { $0[key] ?? [:] }
    }

    /// A run is about to tell that it is over; it calls this first, as the session's next run may begin as soon as it told.
    func keep(_ remembered: [Int64: FileHistory], of key: SessionKey, by run: LiveRun) {
        histories.withLock { $0[key] = remembered.isEmpty || run.isHistoryForgotten ? nil : remembered }
    }

    /// Files wait no longer for their next attempts.
    func hurry(_ key: SessionKey) {
        histories.withLock { histories in
            guard let present = histories[key] else { return }
            for position in present.keys { histories[key]?[position]?.stopWaiting() }
        }
    }

    /// What was remembered no longer counts, nor what the present run has yet to tell.
    func forget(_ key: SessionKey, _ run: LiveRun?) {
        run?.forgetHistory()
        histories.withLock { $0[key] = nil }
    }
}
