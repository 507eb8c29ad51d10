import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A client of an SSH agent (draft-miller-ssh-agent). Unlike libssh2's client, its methods never block beyond the given deadline.
final class AgentClient {
    /// The text ends a message that begins with the agent's name.
    struct Failure: Error {
        let text: String
    }

    private let socket: CInt
    private let mailbox: ConnectionMailbox

    private static let maximumResponseSize = 256 << 10

    /// Does not block.
    init(path: FilePath, mailbox: ConnectionMailbox) throws(Failure) {
        self.mailbox = mailbox
        #if canImport(Glibc)
            let descriptor = Glibc.socket(AF_UNIX, CInt(SOCK_STREAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        #else
            let descriptor = Darwin.socket(AF_UNIX, SOCK_STREAM, 0)
        #endif
        guard descriptor >= 0 else { throw Failure(errno) }
        socket = descriptor
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let name = Array(path.string.utf8)
        // The terminating zero needs one byte (unix(7)).
        guard name.count < MemoryLayout.size(ofValue: address.sun_path) else { throw Failure(text: "the path is too long for a socket") }
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: name) }
        let result = unsafe withUnsafePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw Failure(errno) }
    }

    deinit {
        close(socket)
    }

    /// Requests the agent's public keys. Returns at most 1,024 keys.
    func identities(by deadline: Deadline) throws(Failure) -> [HostKey] {
        // Type 11 is SSH_AGENTC_REQUEST_IDENTITIES, and type 12 is SSH_AGENT_IDENTITIES_ANSWER.
        var reader = WireReader(try exchange([11], by: deadline))
        guard reader.readByte() == 12, let count = reader.readUInt32() else {
            throw Failure(text: "it did not return its list of keys")
        }
        var keys: [HostKey] = []
        for _ in 0..<min(count, 1024) {
            guard let blob = reader.readString(), reader.readString() != nil else { throw Failure(text: "its response is invalid") }
            if let key = HostKey(blob) { keys.append(key) }
        }
        return keys
    }

    /// - Parameter flags: 2 for RSA with SHA-256, 4 for RSA with SHA-512, 0 for other algorithms.
    /// - Returns: The signature without the name of its algorithm.
    func sign(_ data: [UInt8], with key: HostKey, flags: UInt32, by deadline: Deadline) throws(Failure) -> [UInt8] {
        // Type 13 is SSH_AGENTC_SIGN_REQUEST, and type 14 is SSH_AGENT_SIGN_RESPONSE.
        var writer = WireWriter()
        writer.write(byte: 13)
        writer.write(string: key.bytes)
        writer.write(string: data)
        writer.write(flags)
        var reader = WireReader(try exchange(writer.bytes, by: deadline))
        guard reader.readByte() == 14, let signature = reader.readString() else { throw Failure(text: "it refuses to sign") }
        var fields = WireReader(signature)
        guard fields.readString() != nil, let bytes = fields.readString() else { throw Failure(text: "its signature is invalid") }
        return bytes
    }

    /// Sends a request, and returns the response without its length field.
    private func exchange(_ request: [UInt8], by deadline: Deadline) throws(Failure) -> [UInt8] {
        var writer = WireWriter()
        writer.write(string: request)
        var rest = writer.bytes[...]
        while !rest.isEmpty {
            let sent = unsafe rest.withUnsafeBytes { unsafe send(socket, $0.baseAddress, $0.count, CInt(MSG_NOSIGNAL)) }
            if sent > 0 { rest = rest.dropFirst(sent) } else { try wait(Int32(POLLOUT), by: deadline) }
        }
        var length = WireReader(try read(4, by: deadline))
        guard let count = length.readUInt32(), (1...UInt32(Self.maximumResponseSize)).contains(count) else {
            throw Failure(text: "its response is invalid")
        }
        return try read(Int(count), by: deadline)
    }

    private func read(_ count: Int, by deadline: Deadline) throws(Failure) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        var received = 0
        while received < count {
            let result = unsafe bytes.withUnsafeMutableBytes { buffer in
                unsafe recv(socket, buffer.baseAddress?.advanced(by: received), count - received, 0)
            }
            if result > 0 {
                received += result
            } else if result == 0 {
                throw Failure(text: "it closed the connection")
            } else {
                try wait(Int32(POLLIN), by: deadline)
            }
        }
        return bytes
    }

    /// Waits until the socket is ready if the last call failed with EAGAIN or EINTR. Throws any other error.
    private func wait(_ events: Int32, by deadline: Deadline) throws(Failure) {
        guard errno == EAGAIN || errno == EINTR else { throw Failure(errno) }
        do {
            try mailbox.wait(for: events, on: socket, by: deadline)
        } catch {
            throw Failure(text: "it did not respond in time")
        }
    }
}

extension AgentClient.Failure {
    fileprivate init(_ code: CInt) {
        text = unsafe String(cString: strerror(code))
    }
}

extension SSHAuthentication.Agent {
    /// The path of the agent's socket; nil if no agent is configured.
    var path: FilePath? {
        switch self {
        case .none: return nil
        case .socket(let path): return path
        case .environment:
            guard let value = unsafe getenv("SSH_AUTH_SOCK"), unsafe value.pointee != 0 else { return nil }
            return FilePath(unsafe String(cString: value))
        }
    }
}
