import Foundation
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A private key file, parsed as far as needed to explain errors that libssh2 does not explain.
struct PrivateKeyFile {
    let path: FilePath
    /// With a terminating zero.
    let content: [UInt8]
    /// The type of the key, for example `ssh-ed25519`; nil if only libssh2 can parse the key.
    let type: String?
    let isEncrypted: Bool

    private static let sizeLimit = 64 << 10

    /// Reads a file. Blocks.
    ///
    /// - Throws: A `TransferError` of the class `credentials`. Its message becomes part of another message.
    init(_ path: FilePath) throws(TransferError) {
        self.path = path
        var content: [UInt8]
        let isShared: Bool
        do {
            // Without O_NONBLOCK, opening a FIFO would wait for a writer.
            let file = try FileDescriptor.open(path, .readOnly, options: [.nonBlocking, .closeOnExec])
            (content, isShared) = try file.closeAfter { (try file.readAll(limit: Self.sizeLimit), isOpenToOthers(file)) }
        } catch {
            throw TransferError(.credentials, .credentialsUnavailable, "the key file \(path) can't be read", cause: "\(error)")
        }
        let text = String(decoding: content, as: UTF8.self)
        guard text.contains("-----BEGIN "), text.contains("PRIVATE KEY-----"), !content.contains(0) else {
            let hint =
                text.hasPrefix("ssh-") || text.hasPrefix("ecdsa-")
                ? "contains a public key; use the file without .pub" : "contains no private key"
            throw TransferError(.credentials, .credentialsUnavailable, "the key file \(path) \(hint)")
        }
        guard !isShared else {
            throw TransferError(
                .credentials, .credentialsUnavailable,
                "the key file \(path) is accessible to other users, so it is not used; run: chmod 600 \(path.string.shellWord)")
        }
        content.append(0)
        self.content = content
        if text.contains("-----BEGIN OPENSSH PRIVATE KEY-----") {
            guard let header = OpenSSHHeader(text) else {
                throw TransferError(.credentials, .credentialsUnavailable, "the key file \(path) is damaged")
            }
            type = header.type
            isEncrypted = header.isEncrypted
        } else {
            type = text.contains("BEGIN RSA PRIVATE KEY") ? "ssh-rsa" : text.contains("BEGIN DSA PRIVATE KEY") ? "ssh-dss" : nil
            // These lines mark encrypted keys (RFC 1421, section 4.6.1.1; RFC 5958, section 3).
            isEncrypted = text.contains("Proc-Type: 4,ENCRYPTED") || text.contains("BEGIN ENCRYPTED PRIVATE KEY")
        }
    }
}

/// Returns whether other users can access a file that this user owns. Like ssh(1), returns false for files of other owners.
private func isOpenToOthers(_ file: FileDescriptor) -> Bool {
    var status = stat()
    guard unsafe fstat(file.rawValue, &status) == 0 else { return false }
    return status.st_uid == getuid() && status.st_mode & 0o077 != 0
}

/// The unencrypted header of a private key in OpenSSH's format (PROTOCOL.key in OpenSSH's sources).
private struct OpenSSHHeader {
    let type: String
    let isEncrypted: Bool

    init?(_ text: String) {
        let lines = text.split(whereSeparator: \.isNewline).drop { !$0.hasPrefix("-----BEGIN OPENSSH") }.dropFirst()
        let base64 = lines.prefix { !$0.hasPrefix("-----END") }.joined()
        guard let data = Data(base64Encoded: base64, options: .ignoreUnknownCharacters) else { return nil }
        var reader = WireReader([UInt8](data))
        guard reader.readBytes(15) == Array("openssh-key-v1\0".utf8), let cipher = reader.readString(), reader.readString() != nil,
            reader.readString() != nil, reader.readUInt32() == 1, let blob = reader.readString(), let key = HostKey(blob)
        else { return nil }
        type = key.type
        isEncrypted = cipher != Array("none".utf8)
    }
}
