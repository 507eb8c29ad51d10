import CSSH2

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Signs data for libssh2 with an agent's key. Used only on the connection's thread.
final class AgentSigner {
    let key: HostKey
    private let client: AgentClient
    private let deadline: Deadline
    private(set) var failure: AgentClient.Failure?

    init(client: AgentClient, key: HostKey, deadline: Deadline) {
        self.client = client
        self.key = key
        self.deadline = deadline
    }

    /// The callback for libssh2 (libssh2_userauth_publickey(3)).
    static func sign(
        _ context: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, _ data: UnsafePointer<UInt8>?, _ length: Int,
        _ signature: UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?, _ signatureLength: UnsafeMutablePointer<Int>?
    ) -> CInt {
        guard let signer = unsafe SocketTraffic.from(context)?.signer, let signature = unsafe signature,
            let signatureLength = unsafe signatureLength,
            let bytes = signer.sign(unsafe [UInt8](UnsafeBufferPointer(start: data, count: length))),
            // libssh2 frees the copy.
            let copy = unsafe malloc(max(1, bytes.count))
        else { return -1 }
        unsafe UnsafeMutableRawBufferPointer(start: copy, count: bytes.count).copyBytes(from: bytes)
        unsafe signature.pointee = unsafe copy.assumingMemoryBound(to: UInt8.self)
        unsafe signatureLength.pointee = bytes.count
        return 0
    }

    private func sign(_ data: [UInt8]) -> [UInt8]? {
        do throws(AgentClient.Failure) {
            return try client.sign(data, with: key, flags: Self.flags(data), by: deadline)
        } catch {
            failure = error
            return nil
        }
    }

    /// Returns the agent flags that select the signature algorithm named in the data (RFC 4252, section 7; RFC 8332).
    private static func flags(_ data: [UInt8]) -> UInt32 {
        var reader = WireReader(data)
        guard reader.readString() != nil, reader.readByte() != nil, reader.readString() != nil, reader.readString() != nil,
            reader.readString() != nil, reader.readByte() != nil, let algorithm = reader.readString()
        else { return 0 }
        switch String(decoding: algorithm, as: UTF8.self) {
        case "rsa-sha2-256": return 2
        case "rsa-sha2-512": return 4
        default: return 0
        }
    }
}
