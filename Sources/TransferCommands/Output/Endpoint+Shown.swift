import TransferCore

extension Endpoint {
    /// The address for people and scripts. A query may be a signature or a token, and no secret is ever printed.
    var shownAddress: String { location == address ? address : location + "?…" }

    /// The settings in the order of their names; of fields of forms that may bear a secret, not the value.
    var shownSettings: [(name: String, value: String)] {
        settings.sorted { $0.key < $1.key }.map { name, value in
            let field = name.split(separator: ".", maxSplits: 1)
            return (name, field.first == "field" && field.count == 2 && HeaderField.isSecret(String(field[1])) ? "…" : value)
        }
    }
}
