import Locking
import TransferCore

/// The file histories that earlier runs of the sessions recorded in this process.
final class RunHistories: Sendable {
    private let histories = Locked<[SessionKey: [Int64: FileHistory]]>([:])

    func of(_ key: SessionKey) -> [Int64: FileHistory] {
        histories.withLock { $0[key] ?? [:] }
    }

    /// Keeps the histories of a run that is about to report its end. Called before the report, because the session's next run may begin
    /// immediately after the report. Does nothing for an abandoned run, because the session may have been reset or removed since.
    func keep(_ remembered: [Int64: FileHistory], of key: SessionKey, by run: LiveRun) {
        histories.withLock { histories in
            guard !run.isAbandoned else { return }
            histories[key] = remembered.isEmpty || run.isHistoryForgotten ? nil : remembered
        }
    }

    /// Makes the next attempts of a session's waiting files due immediately.
    func skipBackoff(_ key: SessionKey) {
        histories.withLock { histories in
            guard let present = histories[key] else { return }
            for position in present.keys { histories[key]?[position]?.stopWaiting() }
        }
    }

    /// Forgets a session's histories, including the histories that its current run has not reported yet.
    func forget(_ key: SessionKey, _ run: LiveRun?) {
        run?.forgetHistory()
        histories.withLock { $0[key] = nil }
    }
}
