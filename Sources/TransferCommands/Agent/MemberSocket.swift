package import Logging
package import SystemPackage
import TransferControl
package import TransferKit

/// The control socket of a fleet member, which is one of several processes that run a queue in a PostgreSQL database.
///
/// `agent status` and `agent stop` use the socket. Through the socket, other commands can read the queue, but not change it.
package struct MemberSocket: Sendable {
    private let server: ControlServer

    /// Opens the socket in the queue's storage folder.
    ///
    /// - Parameter onStopRequest: Called when `agent stop` asks this process to exit. This process must then call ``shutDownQueue()``.
    /// - Throws: ``/TransferKit/QueueError`` with the code `storageUnavailable`.
    package init(for queue: TransferQueue, logger: Logger, onStopRequest: @escaping @Sendable () -> Void) throws {
        server = try ControlServer(for: queue, as: .member, logger: logger, onStopRequest: onStopRequest)
    }

    /// Closes the socket, and shuts the queue down.
    package func shutDownQueue() async { await server.shutDownQueue() }

    /// Returns whether a member with this storage folder is running.
    package static func isOpen(in folder: FilePath) async -> Bool {
        let owner = try? await RemoteTransferQueue(folder: folder).owner()
        return owner?.role == .member
    }
}
