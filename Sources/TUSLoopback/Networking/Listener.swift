import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A listening socket on 127.0.0.1.
final class Listener: Sendable {
    let port: UInt16
    private let descriptor: CInt
    // A byte written to this pipe ends the waiting: closing a socket that another thread waits on does not.
    private let wakeUp: (readEnd: FileDescriptor, writeEnd: FileDescriptor)

    /// Listens.
    ///
    /// - Parameter port: 0 for any free one.
    init(port: UInt16) throws(LoopbackError) {
        #if canImport(Glibc)
            let kind = CInt(SOCK_STREAM.rawValue)
        #else
            let kind = SOCK_STREAM
        #endif
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { throw LoopbackError("No socket can be made: \(Errno(rawValue: errno)).") }
        do throws(LoopbackError) {
            self.port = try Self.bind(descriptor, to: port)
        } catch {
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        do {
            wakeUp = try FileDescriptor.pipe()
        } catch {
            close(descriptor)
            throw LoopbackError("No pipe can be made: \(error).")
        }
    }

    private static func bind(_ descriptor: CInt, to port: UInt16) throws(LoopbackError) -> UInt16 {
        var enabled: CInt = 1
        // Without it, a server that is started again can't have its port back for a minute.
        unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &enabled, socklen_t(MemoryLayout<CInt>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let failed = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                #if canImport(Glibc)
                    let bound = unsafe Glibc.bind(descriptor, address, size)
                #else
                    let bound = unsafe Darwin.bind(descriptor, address, size)
                #endif
                return unsafe bound != 0 || listen(descriptor, 128) != 0 || getsockname(descriptor, address, &size) != 0
            }
        }
        guard !failed else {
            throw LoopbackError("The server can't listen at 127.0.0.1:\(port): \(Errno(rawValue: errno)).")
        }
        return UInt16(bigEndian: address.sin_port)
    }

    /// Whether a connection waits to be accepted.
    var isReadable: Bool {
        var event = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&event, 1, 0) > 0
    }

    /// The listener's place among the connections in ``ArrivalOrder``.
    static let number = 0

    /// Waits for the next connection, on a thread of the caller's.
    ///
    /// - Parameter number: The connection's.
    /// - Returns: nil once ``stop()`` was called.
    func accept(number: Int, order: ArrivalOrder) -> Connection? {
        while true {
            order.set(.waiting, for: Self.number)
            var events = [
                pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: wakeUp.readEnd.rawValue, events: Int16(POLLIN), revents: 0),
            ]
            guard unsafe poll(&events, nfds_t(events.count), -1) > 0 else { continue }
            order.set(.reading, for: Self.number)
            guard events[1].revents == 0 else { return nil }
            #if canImport(Glibc)
                let accepted = Glibc.accept(descriptor, nil, nil)
            #else
                let accepted = Darwin.accept(descriptor, nil, nil)
            #endif
            if accepted >= 0 { return Connection(descriptor: accepted, number: number) }
        }
    }

    /// Makes ``accept()`` return nil, now and from then on.
    func stop() {
        _ = try? wakeUp.writeEnd.writeAll([0])
    }

    deinit {
        close(descriptor)
        try? wakeUp.readEnd.close()
        try? wakeUp.writeEnd.close()
    }
}
