import Locking
package import TransferCore

/// The metric labels of a session's runs in this process: the direction and the transport.
package final class RunLabels: Sendable {
    let direction: TransferDirection
    private let transport: Locked<TransportID?>

    /// - Parameter transport: The transport of the session's last attempt; nil before its first attempt.
    package init(_ direction: TransferDirection, transport: TransportID? = nil) {
        self.direction = direction
        self.transport = Locked(transport)
    }

    /// Records the transport of the current attempt.
    func use(_ value: TransportID) { transport.withLock { $0 = value } }

    var dimensions: [(String, String)] {
        [("direction", direction.rawValue), ("transport", transport.withLock { $0 }?.rawValue ?? Self.none)]
    }

    /// The labels of a session that has not run in this process. The scheduler knows neither label of such a session.
    static let unknown = [("direction", none), ("transport", none)]
    private static let none = "none"
}
