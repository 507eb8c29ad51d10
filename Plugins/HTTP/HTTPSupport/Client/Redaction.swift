package import CurlEngine
import Foundation

/// Removes the secrets of requests from texts. A server may repeat a secret, but the secret must not get into a log or the storage folder.
extension String {
    /// The minimum length in bytes of a secret that is replaced within a text. A shorter secret can occur by chance. A replacement could
    /// then make the text misleading, and would reveal where the secret occurs.
    private static let minimumReplacedLength = 8

    /// Returns the text with `[redacted]` in place of each secret, or `0` in place of a secret of digits, which may be a number in JSON.
    ///
    /// Compares bytes, because a combining mark after a secret would change its last character.
    ///
    /// - Parameter secrets: Header values and other secret texts. Each word of a text is a secret, and so is the password in HTTP Basic
    ///   credentials.
    /// - Returns: The text; nil if it contains a secret that is too short to be replaced.
    package func redacted(_ secrets: [String]) -> String? {
        let found = Self.words(of: secrets).filter { utf8.contains($0) }
        guard !found.isEmpty else { return self }
        guard found.allSatisfy({ $0.count >= Self.minimumReplacedLength }) else { return nil }
        var bytes = Array(utf8)
        // One secret may contain another one, so longer secrets are replaced first.
        for secret in found.sorted(by: { $0.count > $1.count }) {
            let isNumber = secret.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
            bytes.replace(secret, with: Array((isNumber ? "0" : "[redacted]").utf8))
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Returns the text without a partial secret at its end, because a truncated text from a server may end within a secret.
    package func withoutPartialSecret(_ secrets: [String]) -> String {
        let bytes = Array(utf8)
        let longest = Self.words(of: secrets).flatMap { word in
            (1..<max(1, word.count)).filter { bytes.suffix($0).elementsEqual(word.prefix($0)) }
        }.max()
        return longest.map { String(decoding: bytes.dropLast($0), as: UTF8.self) } ?? self
    }

    /// Whether the text contains a secret; see ``redacted(_:)``.
    package func repeats(_ secrets: [String]) -> Bool {
        Self.words(of: secrets).contains { utf8.contains($0) }
    }

    /// Returns the secret words in texts. For a word with slashes, also returns its JSON form, with escaped slashes.
    private static func words(of secrets: [String]) -> [[UInt8]] {
        secrets.flatMap { secret -> [[UInt8]] in
            let parts = secret.split(separator: " ")
            // A scheme such as "Bearer" is not secret.
            var words = parts.filter { !["bearer", "basic"].contains($0.lowercased()) }.map { Array($0.utf8) }
            if parts.first?.lowercased() == "basic", let password = parts.last.flatMap({ password(inBasic: String($0)) }) {
                words.append(password)
            }
            return words
                + words.filter { $0.contains(UInt8(ascii: "/")) }.map { word in
                    word.flatMap { $0 == UInt8(ascii: "/") ? [UInt8(ascii: "\\"), $0] : [$0] }
                }
        }
    }

    /// Returns the password from HTTP Basic credentials (RFC 7617, section 2).
    private static func password(inBasic text: String) -> [UInt8]? {
        guard let data = Data(base64Encoded: text) else { return nil }
        let password = data.drop { $0 != UInt8(ascii: ":") }.dropFirst()
        return password.isEmpty ? nil : Array(password)
    }
}

extension HTTPHeaders.Field {
    /// The headers whose values are credentials, however short they are (RFC 9110, section 11; RFC 6265).
    private static let credentials: Set<String> = ["authorization", "proxy-authorization", "cookie"]
    /// Headers that describe a request or its content, or that name the request for logs. Their values are not secret.
    private static let descriptions: Set<String> = [
        "accept", "baggage", "cache-control", "correlation-id", "date", "from", "idempotency-key", "origin", "pragma", "prefer", "priority",
        "referer", "repr-digest", "request-id", "traceparent", "tracestate", "user-agent", "x-amz-content-sha256", "x-amz-date",
        "x-correlation-id", "x-request-id", "x-trace-id",
    ]
    private static let descriptionPrefixes = ["accept-", "content-", "if-", "want-"]
    private static let minimumSecretLength = 8

    /// The secrets in the value, if the app's header hook has set this header.
    ///
    /// The values of `Authorization`, `Proxy-Authorization` and `Cookie` are secret. In other headers, each word of at least 8 characters
    /// is secret, unless the header only describes the request. Shorter words are most likely flags and numbers, such as a tenant's number.
    package var secrets: [String] {
        let name = self.name.lowercased()
        if name == "cookie" {
            // A server may repeat the value of a cookie without its name.
            let pairs = value.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
            let values = pairs.compactMap { $0.split(separator: "=", maxSplits: 1).dropFirst().first }
            return pairs + values.filter { $0.utf8.count >= Self.minimumSecretLength }.map(String.init)
        }
        if Self.credentials.contains(name) { return [value] }
        guard !Self.descriptions.contains(name), !Self.descriptionPrefixes.contains(where: { name.hasPrefix($0) }) else { return [] }
        return value.split(separator: " ").filter { $0.utf8.count >= Self.minimumSecretLength }.map(String.init)
    }
}
