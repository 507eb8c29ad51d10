import TransferCore

extension Endpoint {
    /// The address for output, without its query, which may contain a signature or token.
    var shownAddress: String { location == address ? address : location + "?…" }

    /// The settings for output, sorted by name. Values of form fields that can be secret are replaced with an ellipsis.
    var shownSettings: [(name: String, value: String)] {
        settings.sorted { $0.key < $1.key }.map { name, value in
            let field = name.split(separator: ".", maxSplits: 1)
            return (name, field.first == "field" && field.count == 2 && HeaderField.isSecret(String(field[1])) ? "…" : value)
        }
    }
}
