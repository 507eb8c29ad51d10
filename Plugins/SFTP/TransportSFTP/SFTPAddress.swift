import Foundation
package import TransferCore

/// What an endpoint's address says: `sftp://user@host:port/folder/`.
///
/// The folder is absolute at the server; one that begins with `/~/` is below the folder that the account begins in.
package struct SFTPAddress: Hashable, Sendable {
    package var host: String
    package var port: UInt16
    package var user: String
    /// In bytes, as it is named to the server; empty for the one that the account begins in.
    package var folder: [UInt8]

    /// - Throws: A ``TransferError`` with the code `invalidEndpoint`.
    package init(_ endpoint: Endpoint) throws(TransferError) {
        let url = try endpoint.validate()
        guard url.scheme?.lowercased() == "sftp", let components = URLComponents(string: endpoint.address), let host = components.host
        else {
            throw Self.invalid("The endpoint address must begin with sftp:// for SFTP.")
        }
        guard components.query == nil else {
            throw Self.invalid("The endpoint address for \(host) has a query (?…), which SFTP does not know; remove it.")
        }
        guard let folder = Self.decode(components.percentEncodedPath), !folder.contains(0) else {
            throw Self.invalid(
                "The folder in the endpoint address for \(host) can't be one: %00 is in it, which no name can have.")
        }
        guard !folder.split(separator: UInt8(ascii: "/")).contains(where: { $0.elementsEqual("..".utf8) }) else {
            throw Self.invalid(
                "The folder in the endpoint address for \(host) has a part \"..\", which leads elsewhere; write the one that is meant.")
        }
        // An address of IPv6 is in brackets.
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

    /// For messages: the host, and the port if it is not the usual one.
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

extension RemotePlace {
    init(_ path: RemotePath, at address: SFTPAddress) {
        self.init(root: "sftp://\(address.serverName)", folder: address.folder, path: path)
    }

    /// Where a path is, without the account's name.
    func url(of path: [UInt8]) -> String {
        let encoded = path.map { byte in Self.isPlain(byte) ? String(UnicodeScalar(byte)) : Self.escape(byte) }.joined()
        return root + (path.first == UInt8(ascii: "/") ? "" : "/~/") + encoded
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        // The characters that a path may hold as they are (RFC 3986, section 2.3), and the slash.
        isSafe(byte) || [UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"), UInt8(ascii: "/")].contains(byte)
    }

    private static func escape(_ byte: UInt8) -> String {
        "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
    }
}
