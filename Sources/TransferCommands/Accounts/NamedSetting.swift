import ArgumentParser
import TransferCore

/// A value of `--setting`: `name=value` or `transport:name=value`.
struct NamedSetting {
    /// The transport whose endpoints get the setting; nil for all endpoints.
    let transport: TransportID?
    let name: String
    /// The new value; nil to remove the setting.
    let value: String?

    /// The settings that `--setting` can only remove, with the option that sets each of them.
    private static let separateOptions = [
        "caFile": "--ca-file", "clientCertificate": "--client-certificate", "clientKey": "--client-key", "hostKey": "--host-key",
        "identity": "--identity", "knownHosts": "--known-hosts",
    ]

    static func accepts(_ name: String) -> Bool { separateOptions[name] == nil && !name.hasPrefix("header.") }

    /// Parses the value of `--setting`.
    ///
    /// - Parameters:
    ///   - text: The value of `--setting`. If the part before `=` contains a colon, the text before this colon names a transport. If that text
    ///     contains a dot and is not a known transport, the colon belongs to the setting's name, as in `field.a:b=c`.
    ///   - transports: The known transports.
    /// - Throws: A `ValidationError` if the text is neither `name=value` nor `transport:name=value`, or if it sets a setting that has its own
    ///   option. The message does not contain the setting's value, which may be a secret.
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
        if let option = Self.separateOptions[name] { throw ValidationError("The setting \(name) has its own option. Use \(option).") }
        if name.hasPrefix("header.") {
            throw ValidationError("Headers have their own options. Use --header, --header-env or --header-file.")
        }
    }

    func apply(to endpoint: inout Endpoint) {
        if transport == nil || transport == endpoint.transport { endpoint.settings[name] = value }
    }
}
