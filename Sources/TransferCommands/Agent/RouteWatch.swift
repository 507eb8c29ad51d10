import Dispatch
import TransferKit

#if canImport(Glibc)
    import Glibc
#endif

/// Wakes the sessions that wait for an unreachable server when this machine gets a new route (netlink(7), rtnetlink(7)).
enum RouteWatch {
    /// The shortest time between two wake-ups. Programs can add many routes at the same time.
    private static let interval = Duration.seconds(1)

    /// Reports to the queue whether the network is metered. After each new route, checks this again, and ends the waits for unreachable servers.
    /// Runs until the task is cancelled. Returns immediately on systems without netlink.
    ///
    /// - Parameter condition: The result of ``begin(_:)``.
    static func run(_ queue: TransferQueue, from condition: NetworkCondition) async {
        guard let changes = changes() else { return }
        var condition = condition
        for await _ in changes {
            // First the condition, because the new route can belong to a metered network.
            await update(&condition, of: queue)
            // An error means that the store fails or that the queue has shut down. A later route can end the waits.
            try? await queue.noteNewRoute()
            guard (try? await Task.sleep(for: interval)) != nil else { return }
            // NetworkManager can detect a metered network after its routes have changed.
            await update(&condition, of: queue)
        }
    }

    /// Reports to a queue that has not started whether the network is metered.
    static func begin(_ queue: TransferQueue) async -> NetworkCondition {
        var condition = NetworkCondition.unconstrained
        await update(&condition, of: queue)
        return condition
    }

    /// Sets the condition of the network if it has changed.
    private static func update(_ condition: inout NetworkCondition, of queue: TransferQueue) async {
        let current = await MeteredNetwork.isMetered() ? NetworkCondition.expensive : .unconstrained
        guard current != condition, (try? await queue.setNetworkCondition(current)) != nil else { return }
        condition = current
    }

    /// A signal after new routes; nil if the system can't report them.
    private static func changes() -> AsyncStream<Void>? {
        #if os(Linux)
            let descriptor = socket(AF_NETLINK, CInt(SOCK_RAW.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | CInt(SOCK_NONBLOCK.rawValue), 0)
            guard descriptor >= 0 else { return nil }
            var address = NetlinkAddress()
            let status = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    unsafe bind(descriptor, pointer, socklen_t(MemoryLayout<NetlinkAddress>.size))
                }
            }
            guard status == 0 else {
                close(descriptor)
                return nil
            }
            let (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            // Dispatch sources are thread-safe, but not marked as Sendable.
            nonisolated(unsafe) let source = DispatchSource.makeReadSource(
                fileDescriptor: descriptor, queue: DispatchQueue(label: "transferq.routes"))
            unsafe source.setEventHandler {
                if receiveAll(descriptor) { continuation.yield() }
            }
            unsafe source.setCancelHandler { close(descriptor) }
            continuation.onTermination = { _ in unsafe source.cancel() }
            unsafe source.resume()
            return signals
        #else
            return nil
        #endif
    }

    #if os(Linux)
        /// `struct sockaddr_nl` of linux/netlink.h.
        private struct NetlinkAddress {
            var family = UInt16(AF_NETLINK)
            var padding: UInt16 = 0
            /// The kernel assigns a number.
            var process: UInt32 = 0
            /// RTMGRP_IPV4_ROUTE and RTMGRP_IPV6_ROUTE of linux/rtnetlink.h.
            var groups: UInt32 = 0x40 | 0x400
        }

        /// RTM_NEWROUTE of linux/rtnetlink.h.
        private static let newRoute: UInt16 = 24
        /// RTN_UNICAST of linux/rtnetlink.h: a route to other machines.
        private static let unicast: UInt8 = 1

        /// Receives all waiting messages.
        ///
        /// - Returns: Whether a message reports a new route to other machines, or messages were lost.
        private static func receiveAll(_ descriptor: CInt) -> Bool {
            var isNew = false
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
                if count < 0, errno == ENOBUFS { isNew = true }
                if count < 0, [ENOBUFS, EINTR].contains(errno) { continue }
                guard count > 0 else { return isNew }
                var rest = buffer[..<count]
                // A message begins with its length in four bytes and its type in two bytes, and the next one begins at a multiple of four. The byte
                // at 23 is `rtm_type` of `struct rtmsg`.
                while rest.count >= 16 {
                    let start = rest.startIndex
                    let length = (0..<4).reduce(0) { $0 | Int(rest[start + $1]) << ($1 * 8) }
                    guard length >= 16 else { break }
                    let type = UInt16(rest[start + 4]) | UInt16(rest[start + 5]) << 8
                    if type == newRoute, rest.count > 23, rest[start + 23] == unicast { isNew = true }
                    rest = rest.dropFirst((length + 3) & ~3)
                }
            }
        }
    #endif
}
