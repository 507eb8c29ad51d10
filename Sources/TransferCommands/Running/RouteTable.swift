import Dispatch
import Locking

#if canImport(Glibc)
    import Glibc
#endif

/// The routes of this machine, according to the kernel (netlink(7), rtnetlink(7)).
enum RouteTable {
    /// Reports changes of routes and network interfaces.
    final class Changes: Sendable {
        /// Yields a signal after one or more changes.
        let signals: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation
        private let hasNewRoute = Locked(false)

        fileprivate init() { (signals, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1)) }

        fileprivate func signal(isNew: Bool) {
            if isNew { hasNewRoute.withLock { $0 = true } }
            continuation.yield()
        }

        fileprivate func whenEnded(_ body: @escaping @Sendable () -> Void) { continuation.onTermination = { _ in body() } }

        /// Returns whether a new route to other machines was reported since the last call, or reports were lost.
        func hasNewRouteSinceLastCall() -> Bool {
            hasNewRoute.withLock { hasNewRoute in
                defer { hasNewRoute = false }
                return hasNewRoute
            }
        }
    }

    /// Starts to watch the routes. Returns nil if the system can't report them.
    static func changes() -> Changes? {
        #if os(Linux)
            // RTMGRP_LINK, RTMGRP_IPV4_ROUTE and RTMGRP_IPV6_ROUTE of linux/rtnetlink.h. When an interface goes down, the kernel removes its
            // IPv4 routes but sends messages only about the interface.
            guard let descriptor = open(groups: 0x1 | 0x40 | 0x400, CInt(SOCK_NONBLOCK.rawValue)) else { return nil }
            let changes = Changes()
            // Dispatch sources are thread-safe, but not marked as Sendable.
            nonisolated(unsafe) let source = DispatchSource.makeReadSource(
                fileDescriptor: descriptor, queue: DispatchQueue(label: "transferq.routes"))
            unsafe source.setEventHandler { [weak changes] in
                var isNew = false
                let result = receive(descriptor) { message in
                    if message.type == newRoute, message.isRoute { isNew = true }
                    return true
                }
                changes?.signal(isNew: isNew || result == ENOBUFS)
            }
            unsafe source.setCancelHandler { close(descriptor) }
            changes.whenEnded { unsafe source.cancel() }
            unsafe source.resume()
            return changes
        #else
            return nil
        #endif
    }

    /// Returns whether this machine has a route to other machines; nil if the kernel does not report its routes. Blocks until the kernel
    /// responds, or for a second without a response.
    static func hasRoute() -> Bool? {
        #if os(Linux)
            guard let descriptor = open(groups: 0, 0) else { return nil }
            defer { close(descriptor) }
            var limit = timeval(tv_sec: 1, tv_usec: 0)
            guard unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size)) == 0 else {
                return nil
            }
            // A header with the length, RTM_GETROUTE, NLM_F_REQUEST | NLM_F_DUMP and a sequence number, and an empty `struct rtmsg`.
            let request: [UInt8] = [28, 0, 0, 0, 26, 0, 0x01, 0x03, 1, 0, 0, 0] + Array(repeating: 0, count: 16)
            guard unsafe request.withUnsafeBytes({ unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, 0) }) == request.count else {
                return nil
            }
            var (isFound, isComplete) = (false, false)
            _ = receive(descriptor) { message in
                if message.type == newRoute, message.isRoute { isFound = true }
                // NLMSG_DONE is 3. Types up to 3, such as NLMSG_ERROR, end the response.
                if message.type == 3 { isComplete = true }
                return message.type > 3 && !isFound
            }
            return isFound || isComplete ? isFound : nil
        #else
            return nil
        #endif
    }

    #if os(Linux)
        /// RTM_NEWROUTE of linux/rtnetlink.h.
        private static let newRoute: UInt16 = 24

        /// `struct sockaddr_nl` of linux/netlink.h.
        private struct Address {
            var family = UInt16(AF_NETLINK)
            var padding: UInt16 = 0
            /// 0, so that the kernel assigns a number.
            var process: UInt32 = 0
            var groups: UInt32
        }

        private static func open(groups: UInt32, _ flags: CInt) -> CInt? {
            let descriptor = socket(AF_NETLINK, CInt(SOCK_RAW.rawValue) | CInt(SOCK_CLOEXEC.rawValue) | flags, 0)
            guard descriptor >= 0 else { return nil }
            var address = Address(groups: groups)
            let status = unsafe withUnsafePointer(to: &address) { pointer in
                unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    unsafe bind(descriptor, pointer, socklen_t(MemoryLayout<Address>.size))
                }
            }
            guard status == 0 else {
                close(descriptor)
                return nil
            }
            return descriptor
        }

        /// A message from the kernel: a length in four bytes, a type in two bytes, ten other bytes, and for a route `struct rtmsg` and attributes.
        private struct Message {
            let bytes: [UInt8]

            var type: UInt16 { number(at: 4) }

            private func number(at index: Int) -> UInt16 { UInt16(bytes[index]) | UInt16(bytes[index + 1]) << 8 }

            /// Whether the message is about a usable route to other machines.
            var isRoute: Bool {
                // RTN_UNICAST, without the flags RTNH_F_DEAD, RTNH_F_LINKDOWN and RTM_F_CLONED.
                guard bytes.count >= 28, bytes[23] == 1, bytes[24] & 0x11 == 0, bytes[25] & 0x02 == 0 else { return false }
                guard bytes[16] == UInt8(AF_INET6) else { return true }
                let target = destination
                // Every machine has routes to its own IPv6 address ::1, and to link-local and multicast addresses.
                let isLoopback = target.last == 1 && target.dropLast().allSatisfy { $0 == 0 } && target.count == 16
                return !isLoopback && !target.starts(with: [0xFE, 0x80]) && target.first != 0xFF
            }

            /// RTA_DST of the route; empty for a default route.
            private var destination: ArraySlice<UInt8> {
                var start = 28
                while start + 4 <= bytes.count {
                    let length = Int(number(at: start))
                    guard length >= 4, start + length <= bytes.count else { break }
                    if number(at: start + 2) == 1 { return bytes[(start + 4)..<(start + length)] }
                    start += (length + 3) & ~3
                }
                return []
            }
        }

        /// Receives messages until no more arrive, or until the body returns false.
        ///
        /// - Returns: ENOBUFS if messages were lost; otherwise 0.
        private static func receive(_ descriptor: CInt, _ body: (Message) -> Bool) -> CInt {
            var result: CInt = 0
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while true {
                let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
                if count < 0, errno == ENOBUFS { result = ENOBUFS }
                if count < 0, [ENOBUFS, EINTR].contains(errno) { continue }
                guard count > 0 else { return result }
                var rest = buffer[..<count]
                // Each message begins at an offset that is a multiple of four.
                while rest.count >= 16 {
                    let start = rest.startIndex
                    let length = (0..<4).reduce(0) { $0 | Int(rest[start + $1]) << ($1 * 8) }
                    guard length >= 16, length <= rest.count else { break }
                    guard body(Message(bytes: Array(rest.prefix(length)))) else { return result }
                    rest = rest.dropFirst((length + 3) & ~3)
                }
            }
        }
    #endif
}
