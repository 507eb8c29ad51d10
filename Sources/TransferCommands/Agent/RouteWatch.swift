import Dispatch
import TransferKit

#if canImport(Glibc)
    import Glibc
#endif

/// Wakes waiting sessions when a route or an address of this machine appears (netlink(7), rtnetlink(7)).
enum RouteWatch {
    /// The shortest time between two wake-ups. Programs can add many routes at the same time.
    private static let interval = Duration.milliseconds(500)

    /// After each new route or address, ends the retry delays of all accounts, and makes their unavailable endpoints available for a probe. Runs until
    /// the task is cancelled. Returns immediately on systems without netlink.
    static func run(_ queue: TransferQueue) async {
        guard let changes = changes() else { return }
        for await _ in changes {
            for account in await queue.accounts() { try? await queue.retryEndpoints(of: account.account.name) }
            guard (try? await Task.sleep(for: interval)) != nil else { return }
        }
    }

    /// A signal after new routes or addresses; nil if the system can't report them.
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
            /// RTMGRP_IPV4_IFADDR, RTMGRP_IPV4_ROUTE, RTMGRP_IPV6_IFADDR and RTMGRP_IPV6_ROUTE of linux/rtnetlink.h.
            var groups: UInt32 = 0x10 | 0x40 | 0x100 | 0x400
        }

        /// RTM_NEWADDR and RTM_NEWROUTE of linux/rtnetlink.h.
        private static let additions: Set<UInt16> = [20, 24]

        /// Receives all waiting messages.
        ///
        /// - Returns: Whether a message reports a new route or address, or messages were lost.
        private static func receiveAll(_ descriptor: CInt) -> Bool {
            var isNew = false
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
                if count < 0, errno == ENOBUFS { isNew = true }
                if count < 0, [ENOBUFS, EINTR].contains(errno) { continue }
                guard count > 0 else { return isNew }
                var rest = buffer[..<count]
                // A message begins with its length in four bytes and its type in two bytes, and the next one begins at a multiple of four.
                while rest.count >= 16 {
                    let start = rest.startIndex
                    let length = (0..<4).reduce(0) { $0 | Int(rest[start + $1]) << ($1 * 8) }
                    guard length >= 16 else { break }
                    if additions.contains(UInt16(rest[start + 4]) | UInt16(rest[start + 5]) << 8) { isNew = true }
                    rest = rest.dropFirst((length + 3) & ~3)
                }
            }
        }
    #endif
}
