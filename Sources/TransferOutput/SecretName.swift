/// The names of headers and form fields whose values are probably secret.
package enum SecretName {
    private static let words = ["authorization", "cookie", "key", "token", "secret", "password", "credential", "signature"]

    /// Whether a name suggests that its value is secret.
    package static func matches(_ name: String) -> Bool {
        let name = name.lowercased()
        return words.contains { name.contains($0) }
    }
}
