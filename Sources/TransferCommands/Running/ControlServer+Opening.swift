import Logging
import TransferControl
import TransferKit

extension ControlServer {
    /// Opens the control socket of a queue. On failure, logs a warning and returns nil, because the queue also runs without a socket.
    static func open(
        for queue: TransferQueue, as role: QueueOwner.Role, logger: Logger, onStopRequest: (@Sendable () -> Void)? = nil
    ) -> ControlServer? {
        do {
            return try ControlServer(for: queue, as: role, logger: logger, onStopRequest: onStopRequest)
        } catch {
            logger.warning("Other commands can't control the queue during this run. \(error)")
            return nil
        }
    }
}
