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
