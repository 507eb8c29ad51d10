import CSSH2
import TransferCore

/// The SSH algorithms of one kind, such as ciphers, in order of preference.
struct MethodPreferences {
    /// The number of the kind in libssh2, such as `LIBSSH2_METHOD_KEX`.
    let kind: CInt
    let names: [String]

    /// Counter mode comes first, because libssh2 is slower with other ciphers. CBC, arcfour and MD5 are excluded. SHA-1 needs `allowsSHA1`.
    static func all(hostKeyTypes: [String], allowsSHA1: Bool) -> [MethodPreferences] {
        let ciphers = [
            "aes128-ctr", "aes256-ctr", "aes192-ctr", "aes256-gcm@openssh.com", "aes128-gcm@openssh.com", "chacha20-poly1305@openssh.com",
        ]
        let macs =
            [
                "hmac-sha2-256", "hmac-sha2-256-etm@openssh.com", "hmac-sha2-512", "hmac-sha2-512-etm@openssh.com",
            ] + (allowsSHA1 ? ["hmac-sha1"] : [])
        let exchanges =
            [
                "mlkem768x25519-sha256", "curve25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256", "ecdh-sha2-nistp384",
                "ecdh-sha2-nistp521", "diffie-hellman-group16-sha512", "diffie-hellman-group18-sha512", "diffie-hellman-group14-sha256",
                "diffie-hellman-group-exchange-sha256",
            ] + (allowsSHA1 ? ["diffie-hellman-group14-sha1"] : [])
        return [
            MethodPreferences(kind: CInt(LIBSSH2_METHOD_KEX), names: exchanges),
            MethodPreferences(kind: CInt(LIBSSH2_METHOD_HOSTKEY), names: hostKeyTypes),
            MethodPreferences(kind: CInt(LIBSSH2_METHOD_CRYPT_CS), names: ciphers),
            MethodPreferences(kind: CInt(LIBSSH2_METHOD_CRYPT_SC), names: ciphers),
            MethodPreferences(kind: CInt(LIBSSH2_METHOD_MAC_CS), names: macs),
            MethodPreferences(kind: CInt(LIBSSH2_METHOD_MAC_SC), names: macs),
            MethodPreferences(kind: CInt(LIBSSH2_METHOD_COMP_CS), names: ["none"]),
            MethodPreferences(kind: CInt(LIBSSH2_METHOD_COMP_SC), names: ["none"]),
        ]
    }

    /// Returns the types of host keys to offer, known types first. Otherwise, a server with several keys might present an unknown key, and the
    /// client would report a changed key.
    ///
    /// - Parameter refused: Types to exclude.
    static func hostKeyTypes(known: [String], refused: [String] = [], allowsSHA1: Bool) -> [String] {
        let rsa = ["rsa-sha2-512", "rsa-sha2-256"] + (allowsSHA1 ? ["ssh-rsa"] : [])
        let all = ["ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521"] + rsa
        let first = known.flatMap { $0 == "ssh-rsa" ? rsa : [$0] }.filter { all.contains($0) }
        let excluded = refused.flatMap { $0 == "ssh-rsa" ? rsa : [$0] }
        return (first + all).reduce(into: []) { if !$0.contains($1), !excluded.contains($1) { $0.append($1) } }
    }
}
