package import TransferCore

extension Endpoint {
    /// The address for output, without its query, which may contain a signature or token.
    package var displayAddress: String { location == address ? address : location + "?…" }

    /// The settings for output, sorted by name. An ellipsis replaces the values of form fields whose names suggest a secret.
    package var displaySettings: [(name: String, value: String)] {
        settings.sorted { $0.key < $1.key }.map { name, value in
            let field = name.split(separator: ".", maxSplits: 1)
            return (name, field.first == "field" && field.count == 2 && SecretName.matches(String(field[1])) ? "…" : value)
        }
    }
}
