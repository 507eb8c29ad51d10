import ArgumentParser
import TransferCore

/// A setting as `--setting` has it, `name=value` or `transport:name=value`.
struct NamedSetting {
    /// Whose endpoints it is for; nil for all of them.
    let transport: TransportID?
    let name: String
    /// Nil to take the setting away.
    let value: String?

    /// Those that have an option which checks them, and the option.
    private static let ownOptions = [
        "caFile": "--ca-file", "clientCertificate": "--client-certificate", "clientKey": "--client-key", "hostKey": "--host-key",
        "identity": "--identity", "knownHosts": "--known-hosts",
    ]

    /// - Parameter transports: Those that the program has. What stands before a colon and has a dot is the beginning of a name unless it is one of
    ///   them: the fields of forms have names with colons, too.
    /// - Throws: A `ValidationError` that names the setting and never its value.
    init(_ text: String, of transports: RegisteredTransports) throws {
        guard ProcessArguments.isText(text), let equals = text.firstIndex(of: "=") else {
            throw ValidationError("--setting takes NAME=VALUE, or TRANSPORT:NAME=VALUE.")
        }
        var names = text[..<equals].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        if names[0].contains("."), !transports.all.contains(where: { $0.id.rawValue == names[0] }) { names = [String(text[..<equals])] }
        guard let name = names.last, names.allSatisfy({ !$0.isEmpty }) else {
            throw ValidationError("--setting takes NAME=VALUE, or TRANSPORT:NAME=VALUE.")
        }
        transport = names.count == 2 ? TransportID(rawValue: names[0]) : nil
        self.name = name
        let value = String(text[text.index(after: equals)...])
        self.value = value.isEmpty ? nil : value
        guard !value.isEmpty else { return }
        if let option = Self.ownOptions[name] { throw ValidationError("The setting \(name) has an option of its own: \(option).") }
        if name.hasPrefix("header.") { throw ValidationError("A header has an option of its own: --header.") }
    }

    /// Sets it at an endpoint, if it is for that one.
    func apply(to endpoint: inout Endpoint) {
        if transport == nil || transport == endpoint.transport { endpoint.settings[name] = value }
    }
}
