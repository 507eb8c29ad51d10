import HTTPTypes
import Locking
import NIOCore
import TransferCore

/// Keeps requests about uploads in the order in which they were sent, though each is treated by a task of its own.
///
/// A client that lost its connection asks on a new one how far its upload is. The request it had sent before may have been received, but its
/// task has not come to it yet. An answer that left it out would be wrong a moment later, so a request waits until such ones have their turn.
final class ArrivalOrder: Sendable {
    private struct Arrival {
        let path: String
        let bringsContent: Bool
        /// What came behind the body (RFC 9110, section 6.5), which HTTP libraries above NIO drop.
        var trailers: HTTPFields?
    }

    private struct Line {
        let channel: any Channel
        /// Lower for connections that were accepted earlier.
        let number: Int
        var arrivals: [Arrival] = []
        /// Whether the first of them has its turn.
        var isHandling = false
    }

    private struct State {
        var listener: (any Channel)?
        var accepted = 0
        var lines: [ObjectIdentifier: Line] = [:]
        var settling: [CheckedContinuation<Bool, Never>] = []
    }

    private let state = Locked(State())

    /// Notes where connections come from.
    func listen(at listener: any Channel) {
        state.withLock { $0.listener = listener }
    }

    /// Notes a new connection. On its event loop.
    func join(_ channel: any Channel) {
        state.withLock { state in
            state.accepted += 1
            state.lines[ObjectIdentifier(channel)] = Line(channel: channel, number: state.accepted)
        }
    }

    /// Forgets a connection. On its event loop.
    func leave(_ channel: any Channel) {
        change { $0.lines[ObjectIdentifier(channel)] = nil }
    }

    /// Notes the head of a request. On its connection's event loop.
    func arrived(_ path: String, bringsContent: Bool, on channel: any Channel) {
        state.withLock { $0.lines[ObjectIdentifier(channel)]?.arrivals.append(Arrival(path: path, bringsContent: bringsContent)) }
    }

    /// Notes the end of the request whose head arrived last. On its connection's event loop.
    func ended(with trailers: HTTPFields?, on channel: any Channel) {
        state.withLock { state in
            guard var line = state.lines[ObjectIdentifier(channel)], !line.arrivals.isEmpty else { return }
            line.arrivals[line.arrivals.count - 1].trailers = trailers
            state.lines[ObjectIdentifier(channel)] = line
        }
    }

    /// What came behind the body of the request that is being treated, once that was read to its end.
    func trailers(on channel: any Channel) -> HTTPFields? {
        state.withLock { $0.lines[ObjectIdentifier(channel)]?.arrivals.first?.trailers }
    }

    /// Notes that the connection's request has its turn, or needs none.
    func beginHandling(on channel: any Channel) {
        change { $0.lines[ObjectIdentifier(channel)]?.isHandling = true }
    }

    /// Notes that the connection's request is answered.
    func endHandling(on channel: any Channel) {
        change { state in
            guard var line = state.lines[ObjectIdentifier(channel)], !line.arrivals.isEmpty else { return }
            line.arrivals.removeFirst()
            line.isHandling = false
            state.lines[ObjectIdentifier(channel)] = line
        }
    }

    /// Waits until every request that was sent before has its turn.
    func settle(_ path: String, bringsContent: Bool, on channel: any Channel) async {
        // All connections share an event loop: looking from there, none is between being read and being noted. But one that was accepted is set up
        // by a task behind the present one, where only a second look finds it.
        var looksInVain = 0
        while looksInVain < 2 {
            let isUnread = (try? await channel.eventLoop.submit { self.isSomethingUnread }.get()) == true
            looksInVain = isUnread ? 0 : looksInVain + 1
        }
        var isSettled = false
        while !isSettled {
            isSettled = await withCheckedContinuation { continuation in
                let isSettled = state.withLock { state in
                    guard isBlocked(path, bringsContent: bringsContent, on: channel, in: state) else { return true }
                    state.settling.append(continuation)
                    return false
                }
                if isSettled { continuation.resume(returning: true) }
            }
        }
    }

    private var isSomethingUnread: Bool {
        let (listener, waiting) = state.withLock { state in
            (state.listener, state.lines.values.filter(\.arrivals.isEmpty).map(\.channel))
        }
        return listener?.isReadable == true || waiting.contains(where: \.isReadable)
    }

    private func isBlocked(_ path: String, bringsContent: Bool, on channel: any Channel, in state: State) -> Bool {
        let number = state.lines[ObjectIdentifier(channel)]?.number ?? .max
        return state.lines.values.contains { line in
            guard line.number != number, !line.isHandling, let first = line.arrivals.first, first.path == path else { return false }
            // Content goes before questions, and among contents the older connection's, so that no two wait for each other.
            return first.bringsContent && (!bringsContent || line.number < number)
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let settling = state.withLock { state in
            body(&state)
            defer { state.settling = [] }
            return state.settling
        }
        for continuation in settling { continuation.resume(returning: false) }
    }
}
