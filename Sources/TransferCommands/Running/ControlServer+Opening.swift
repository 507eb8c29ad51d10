import Logging
import TransferControl
import TransferKit

extension ControlServer {
    /// Opens the socket of a queue; without one the queue runs too, and nobody can control it.
    static func open(
        for queue: TransferQueue, as role: QueueOwner.Role, logger: Logger, endOwner: (@Sendable () -> Void)? = nil
    ) -> ControlServer? {
        do {
            return try ControlServer(for: queue, as: role, logger: logger, endOwner: endOwner)
        } catch {
            logger.warning("Other commands can't control this queue while it runs. \(error)")
            return nil
        }
    }
}

extension CommonOptions {
    /// Refuses to run a queue that another process runs already: to wait for that would be to wait for its end.
    func refuseRunningQueue() async throws {
        guard let owner = try await answeringQueue()?.owner() else { return }
        let name = owner.role == .agent ? "agent" : "process"
        throw CommandFailure(
            .storage,
            "The queue in \(try folder()) is run by the \(name) \(owner.processID) already. Commands work on it as it runs; to end it: \(owner.role == .agent ? "transferq agent stop" : "kill \(owner.processID)")"
        )
    }
}
