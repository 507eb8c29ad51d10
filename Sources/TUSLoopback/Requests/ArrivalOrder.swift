import HTTPTypes
import Locking
import NIOCore
import TransferCore

/// Makes a request for an upload wait for PATCH requests that the server has already received on other connections, even though a separate
/// task handles each request.
///
/// A client that lost its connection opens a new connection and requests the offset of its upload. At this time, the server may have received the
/// earlier PATCH, but the task of the PATCH may not have run yet. The offset in the response would then soon be outdated.
final class ArrivalOrder: Sendable {
    private struct Arrival {
        let path: String
        let hasContent: Bool
        /// The trailer fields (RFC 9110, section 6.5), which HTTP libraries on top of NIO drop.
        var trailers: HTTPFields?
    }

    private struct ConnectionRequests {
        let channel: any Channel
        /// The number of the connection. Connections that were accepted earlier have lower numbers.
        let number: Int
        var arrivals: [Arrival] = []
        /// Whether the handling of the first request has begun; see ``beginHandling(on:)``.
        var isHandling = false
    }

    private struct State {
        var listener: (any Channel)?
        var accepted = 0
        var connections: [ObjectIdentifier: ConnectionRequests] = [:]
        var waiting: [CheckedContinuation<Bool, Never>] = []
    }

    private let state = Locked(State())

    func setListener(_ listener: any Channel) {
        state.withLock { $0.listener = listener }
    }

    /// Adds a connection. Call this method on the connection's event loop.
    func join(_ channel: any Channel) {
        state.withLock { state in
            state.accepted += 1
            state.connections[ObjectIdentifier(channel)] = ConnectionRequests(channel: channel, number: state.accepted)
        }
    }

    /// Removes a connection. Call this method on the connection's event loop.
    func leave(_ channel: any Channel) {
        change { $0.connections[ObjectIdentifier(channel)] = nil }
    }

    /// Adds a request whose head has arrived. Call this method on the connection's event loop.
    func arrived(_ path: String, hasContent: Bool, on channel: any Channel) {
        state.withLock { $0.connections[ObjectIdentifier(channel)]?.arrivals.append(Arrival(path: path, hasContent: hasContent)) }
    }

    /// Stores the trailers of the request whose head arrived last, because this request has ended. Call this method on the connection's
    /// event loop.
    func ended(with trailers: HTTPFields?, on channel: any Channel) {
        state.withLock { state in
            guard var pending = state.connections[ObjectIdentifier(channel)], !pending.arrivals.isEmpty else { return }
            pending.arrivals[pending.arrivals.count - 1].trailers = trailers
            state.connections[ObjectIdentifier(channel)] = pending
        }
    }

    /// Returns the trailers of the request in progress. Call this method after the body was read to the end.
    func trailers(on channel: any Channel) -> HTTPFields? {
        state.withLock { $0.connections[ObjectIdentifier(channel)]?.arrivals.first?.trailers }
    }

    /// Unblocks the requests that wait for the connection's request. Call this method when the connection's request has access to the upload, is
    /// queued for access, or has a response.
    func beginHandling(on channel: any Channel) {
        change { $0.connections[ObjectIdentifier(channel)]?.isHandling = true }
    }

    /// Removes the connection's first request, which has been handled, with or without a response.
    func endHandling(on channel: any Channel) {
        change { state in
            guard var pending = state.connections[ObjectIdentifier(channel)], !pending.arrivals.isEmpty else { return }
            pending.arrivals.removeFirst()
            pending.isHandling = false
            state.connections[ObjectIdentifier(channel)] = pending
        }
    }

    /// Waits until the handling of PATCH requests for the same upload on other connections has begun. A PATCH waits only for older
    /// connections.
    func waitForEarlierRequests(_ path: String, hasContent: Bool, on channel: any Channel) async {
        // All connections share one event loop, so a check on this loop can't run after NIO has read a request and before
        // ``arrived(_:hasContent:on:)`` has added it. After the loop has accepted a connection, it sets up the connection in a later task.
        // A second check is therefore needed to see that connection.
        var emptyChecks = 0
        while emptyChecks < 2 {
            let isUnread = (try? await channel.eventLoop.submit { self.hasUnreadInput }.get()) == true
            emptyChecks = isUnread ? 0 : emptyChecks + 1
        }
        var isFirst = false
        while !isFirst {
            isFirst = await withCheckedContinuation { continuation in
                let isFirst = state.withLock { state in
                    guard isBlocked(path, hasContent: hasContent, on: channel, in: state) else { return true }
                    state.waiting.append(continuation)
                    return false
                }
                if isFirst { continuation.resume(returning: true) }
            }
        }
    }

    private var hasUnreadInput: Bool {
        let (listener, waiting) = state.withLock { state in
            (state.listener, state.connections.values.filter(\.arrivals.isEmpty).map(\.channel))
        }
        return listener?.isReadable == true || waiting.contains(where: \.isReadable)
    }

    private func isBlocked(_ path: String, hasContent: Bool, on channel: any Channel, in state: State) -> Bool {
        let number = state.connections[ObjectIdentifier(channel)]?.number ?? .max
        return state.connections.values.contains { pending in
            guard pending.number != number, !pending.isHandling, let first = pending.arrivals.first, first.path == path else {
                return false
            }
            // Requests with content come before requests without content, and older connections before newer ones. Therefore, two requests
            // never wait for each other.
            return first.hasContent && (!hasContent || pending.number < number)
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiting = state.withLock { state in
            body(&state)
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume(returning: false) }
    }
}
