import Foundation
package import TransferCore

/// The components of an endpoint's address: `sftp://user@host:port/folder/`.
///
/// The folder is absolute on the server. A folder that begins with `/~/` is relative to the account's start folder: the folder in which the
/// server starts an SFTP session, usually the home folder.
package struct SFTPAddress: Hashable, Sendable {
    package var host: String
    package var port: UInt16
    package var user: String
    /// The bytes to send to the server. Without a leading slash, the folder is relative to the account's start folder, and empty bytes mean the
    /// start folder itself.
    package var folder: [UInt8]

    /// - Throws: A ``TransferError`` with the code `invalidEndpoint`.
    package init(_ endpoint: Endpoint) throws(TransferError) {
        let url = try endpoint.validate()
        guard url.scheme?.lowercased() == "sftp", let components = URLComponents(string: endpoint.address), let host = components.host
        else {
            throw Self.invalid("The endpoint address must begin with sftp:// for SFTP.")
        }
        guard components.query == nil else {
            throw Self.invalid("The endpoint address for \(host) has a query (?…), which SFTP does not support; remove it.")
        }
        guard let folder = Self.decode(components.percentEncodedPath), !folder.contains(0) else {
            throw Self.invalid(
                "The folder in the endpoint address for \(host) is invalid: it contains %00, which names can't contain.")
        }
        guard !folder.split(separator: UInt8(ascii: "/")).contains(where: { $0.elementsEqual("..".utf8) }) else {
            throw Self.invalid(
                "The folder in the endpoint address for \(host) contains \"..\"; write the path without it.")
        }
        // An IPv6 address in a URL is in brackets.
        self.host = host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
        port = UInt16(clamping: components.port ?? 22)
        user = components.user ?? NSUserName()
        let home = Array("/~".utf8)
        if folder == home || folder.starts(with: home + [UInt8(ascii: "/")]) {
            self.folder = Array(folder.dropFirst(home.count + 1))
        } else {
            self.folder = folder.isEmpty ? [UInt8(ascii: "/")] : folder
        }
    }

    /// The host, and the port unless it is 22, for messages and URLs.
    var serverName: String { (host.contains(":") ? "[\(host)]" : host) + (port == 22 ? "" : ":\(port)") }

    private static func decode(_ text: String) -> [UInt8]? {
        var bytes: [UInt8] = []
        var rest = Array(text.utf8)[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard rest.count >= 2, let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16) else { return nil }
            bytes.append(value)
            rest = rest.dropFirst(2)
        }
        return bytes
    }

    private static func invalid(_ message: String) -> TransferError {
        TransferError(.permanent, .invalidEndpoint, message)
    }
}

extension RemoteFilePaths {
    init(_ path: RemotePath, at address: SFTPAddress) {
        self.init(root: "sftp://\(address.serverName)", folder: address.folder, path: path)
    }

    /// Omits the user name.
    func url(of path: [UInt8]) -> String {
        let encoded = path.map { byte in Self.isPlain(byte) ? String(UnicodeScalar(byte)) : Self.escape(byte) }.joined()
        return root + (path.first == UInt8(ascii: "/") ? "" : "/~/") + encoded
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        // RFC 3986, section 2.3, and the slash.
        isSafe(byte) || [UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "/")].contains(byte)
    }

    private static func escape(_ byte: UInt8) -> String {
        "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }
}
