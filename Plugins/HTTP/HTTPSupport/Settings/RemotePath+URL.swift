package import TransferCore

extension RemotePath {
    /// The path, encoded for a URL.
    package var percentEncoded: String { Self.percentEncoded(bytes) }

    /// Encodes all bytes for a URL except slashes and unreserved characters (RFC 3986, section 2.3).
    package static func percentEncoded(_ bytes: [UInt8]) -> String {
        bytes.map { byte in
            let character = Character(UnicodeScalar(byte))
            let isPlain = character.isASCII && (character.isLetter || character.isNumber || "-._~/".contains(character))
            return isPlain ? String(character) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
        }.joined()
    }
}
