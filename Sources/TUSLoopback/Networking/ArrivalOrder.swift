import Dispatch
import TransferCore

/// Keeps requests about uploads in the order in which they were sent, though each connection has a thread of its own.
///
/// A client that lost its connection asks on a new one how far its upload is. What it sent before may still lie unread in the old connection,
/// whose thread has not come to it yet. An answer that left it out would be wrong a moment later, so a request waits until all others have
/// read what lies there.
final class ArrivalOrder: Sendable {
    /// Where a connection is.
    enum Phase: Hashable {
        /// Waiting for the first bytes of a request, or for more of its head.
        case waiting
        /// Looking at what it read.
        case reading
        /// It has the head of a request, whose content is not stored yet, if it brings any.
        case arriving(bringsContent: Bool)
        /// It holds the upload that its request is about, or its request is about none.
        case handling
    }

    private struct Participant {
        var phase = Phase.waiting
        let isReadable: @Sendable () -> Bool
    }

    private struct State {
        var participants: [Int: Participant] = [:]
        var settling: [DispatchSemaphore] = []
    }

    private let state = Locked(State())

    /// Takes part from now on.
    ///
    /// - Parameters:
    ///   - number: Lower for connections that were accepted earlier.
    ///   - isReadable: Whether bytes, or the end, lie there to be read.
    func join(_ number: Int, isReadable: @escaping @Sendable () -> Bool) {
        state.withLock { $0.participants[number] = Participant(isReadable: isReadable) }
    }

    func leave(_ number: Int) {
        change { $0.participants[number] = nil }
    }

    func set(_ phase: Phase, for number: Int) {
        change { $0.participants[number]?.phase = phase }
    }

    /// Waits until everything that was sent before has been looked at, on the connection's own thread.
    func settle(_ number: Int, bringsContent: Bool) {
        set(.arriving(bringsContent: bringsContent), for: number)
        while true {
            let changed: DispatchSemaphore? = state.withLock { state in
                guard state.participants.contains(where: { isAhead($0, of: number, bringsContent: bringsContent) }) else { return nil }
                let changed = DispatchSemaphore(value: 0)
                state.settling.append(changed)
                return changed
            }
            guard let changed else { return }
            changed.wait()
        }
    }

    private func isAhead(_ other: (key: Int, value: Participant), of number: Int, bringsContent: Bool) -> Bool {
        guard other.key != number else { return false }
        switch other.value.phase {
        case .waiting: return other.value.isReadable()
        case .reading: return true
        // Content goes before questions, and among contents the older connection's, so that no two wait for each other.
        case .arriving(bringsContent: true): return !bringsContent || other.key < number
        case .arriving(bringsContent: false), .handling: return false
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let settling = state.withLock { state in
            body(&state)
            defer { state.settling = [] }
            return state.settling
        }
        for changed in settling { changed.signal() }
    }
}
