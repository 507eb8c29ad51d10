/// A gate that stops the attempts for one file at one position; see ``MemoryTransport/gate(_:atByte:)``.
public final class MemoryGate: Sendable {
    let path: String
    let position: Int64
    private let arrival = Latch()
    private let opening = Latch()

    init(path: String, position: Int64) {
        self.path = path
        self.position = position
    }

    var isOpen: Bool { opening.isOpen }

    /// Waits until an attempt has arrived at the gate.
    ///
    /// - Throws: `CancellationError` if the task is cancelled first.
    public func reached() async throws {
        try await arrival.wait()
    }

    /// Opens the gate: stopped and future attempts continue.
    public func open() {
        opening.open()
    }

    func waitUntilOpen() async throws {
        arrival.open()
        try await opening.wait()
    }
}
