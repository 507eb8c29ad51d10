import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension ConnectionOptions {
    /// Rejects values that libcurl would silently misinterpret.
    ///
    /// - Throws: An error of the kind ``CurlEngineError/Kind/invalidRequest`` that describes the invalid value.
    package func validate() throws(CurlEngineError) {
        for key in pinnedPublicKeys {
            guard key.utf8.count == 44, key.hasSuffix("="), key.utf8.allSatisfy(isBase64Byte) else {
                throw CurlEngineError(
                    .invalidRequest,
                    "The pinned public key \(key.debugDescription) is not a SHA-256 digest in base64, which has 44 characters.")
            }
        }
        try proxy.validate()
        let texts: [(noun: String, text: String?)] = [
            ("file with trusted certificates", certificateAuthorityFile),
            ("client certificate file", clientCertificate?.certificateFile),
            ("client key file", clientCertificate?.keyFile),
            ("network interface", localInterface),
        ]
        for (noun, text) in texts {
            guard text?.utf8.contains(0) != true, text?.isEmpty != true else {
                throw CurlEngineError(.invalidRequest, "The name of the \(noun) is empty or contains a NUL.")
            }
        }
    }

    /// The interface in the syntax of libcurl. Without a prefix, libcurl would look up an unknown name in the DNS and block all transfers.
    var libcurlInterface: String? {
        localInterface.map { (isIPAddress($0) ? "host!" : "if!") + $0 }
    }
}

extension Proxy {
    fileprivate func validate() throws(CurlEngineError) {
        guard case .url(let url) = choice else { return }
        let parts = url.split(separator: "://", maxSplits: 1)
        let schemes = ["http", "https", "socks4", "socks4a", "socks5", "socks5h"]
        guard parts.count == 2, schemes.contains(parts[0].lowercased()), !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F }) else {
            throw CurlEngineError(
                .invalidRequest,
                "The URL of the proxy is invalid. Write scheme://host:port with one of these schemes: \(schemes.joined(separator: ", ")).")
        }
        guard !url.contains("@") else {
            throw CurlEngineError(
                .invalidRequest,
                "The URL of the proxy contains a user name. Set proxyUser and a credential of the kind proxyPassword instead (transferq: "
                    + "--proxy-password-file).")
        }
        guard userName?.utf8.contains(0) != true, password?.reveal().utf8.contains(0) != true else {
            throw CurlEngineError(.invalidRequest, "The user name or the password for the proxy contains a NUL; remove it.")
        }
    }
}

private func isBase64Byte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    default: "+/=".utf8.contains(byte)
    }
}

private func isIPAddress(_ text: String) -> Bool {
    var address = in6_addr()
    return unsafe inet_pton(AF_INET, text, &address) == 1 || inet_pton(AF_INET6, text, &address) == 1
}
