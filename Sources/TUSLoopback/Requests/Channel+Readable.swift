import NIOCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension Channel {
    /// Whether there is input that NIO has not read yet: received bytes, a new connection, or the end of the stream. Read this property only on the
    /// channel's event loop.
    var isReadable: Bool {
        let isReadable = try? pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) { descriptor in
            var event = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return unsafe poll(&event, 1, 0) > 0
        }
        // The call throws an error if the channel is closed.
        return isReadable ?? false
    }
}
