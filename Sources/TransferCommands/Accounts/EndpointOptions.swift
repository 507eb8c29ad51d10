import ArgumentParser
import Foundation
import SystemPackage
import TransferCore
import TransportSFTP

/// Options for the endpoints of an added or edited account. Each option applies to all endpoints whose transport supports it.
struct EndpointOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The variable with the bearer token.", valueName: "variable"))
    var tokenEnv: String?

    @Option(help: ArgumentHelp("The file with the bearer token.", valueName: "file"))
    var tokenFile: PathArgument?

    @Option(help: ArgumentHelp("The variable with the password of the URL's user.", valueName: "variable"))
    var passwordEnv: String?

    @Option(help: ArgumentHelp("The file with the password of the URL's user.", valueName: "file"))
    var passwordFile: PathArgument?

    @Option(help: ArgumentHelp("The variable with the passphrase of private keys.", valueName: "variable"))
    var passphraseEnv: String?

    @Option(help: ArgumentHelp("The file with the passphrase of private keys.", valueName: "file"))
    var passphraseFile: PathArgument?

    @Option(help: ArgumentHelp("An SSH key, tried after the agent's keys; repeatable.", valueName: "file"))
    var identity: [PathArgument] = []

    @Option(help: ArgumentHelp("A known_hosts file (default: the user's and system's).", valueName: "file"))
    var knownHosts: PathArgument?

    @Option(
        help: ArgumentHelp(
            "strict, accept-new or SHA256:… (default: strict).",
            valueName: "policy"), transform: TextArgument.text)
    var hostKey: String?

    @Option(help: ArgumentHelp("A PEM file of trusted CAs (default: the system's).", valueName: "file"))
    var caFile: PathArgument?

    @Option(help: ArgumentHelp("The client certificate, a PEM file.", valueName: "file"))
    var clientCertificate: PathArgument?

    @Option(
        help: ArgumentHelp("The certificate's key (default: in the same file).", valueName: "file"))
    var clientKey: PathArgument?

    @Option(
        help: ArgumentHelp("The variable with the proxy user's password.", valueName: "variable"))
    var proxyPasswordEnv: String?

    @Option(help: ArgumentHelp("The file with the proxy user's password.", valueName: "file"))
    var proxyPasswordFile: PathArgument?

    @Option(
        help: ArgumentHelp(
            "[TRANSPORT:]NAME=VALUE; NAME= removes it; repeatable.",
            discussion: CommandContext.current.transports.endpointSettings, valueName: "name=value"))
    var setting: [String] = []

    @Option(help: ArgumentHelp("A header without secrets; repeatable.", valueName: "name: value"))
    var header: [String] = []

    @Option(help: ArgumentHelp("A header with the value of a variable; repeatable.", valueName: "name: variable"))
    var headerEnv: [String] = []

    @Option(help: ArgumentHelp("A header with the content of a file; repeatable.", valueName: "name: file"))
    var headerFile: [String] = []

    func validate() throws {
        if tokenEnv != nil, tokenFile != nil { throw ValidationError("--token-env and --token-file can't be used together.") }
        if passwordEnv != nil, passwordFile != nil { throw ValidationError("--password-env and --password-file can't be used together.") }
        if passphraseEnv != nil, passphraseFile != nil {
            throw ValidationError("--passphrase-env and --passphrase-file can't be used together.")
        }
        if proxyPasswordEnv != nil, proxyPasswordFile != nil {
            throw ValidationError("--proxy-password-env and --proxy-password-file can't be used together.")
        }
        var names: Set<String> = []
        for field in try headerFields {
            guard names.insert(field.name.lowercased()).inserted else {
                throw ValidationError("The header \(field.name) is given twice. Remove one of the two.")
            }
        }
        _ = try credentials()
        _ = try settings()
        _ = try namedSettings()
    }

    /// Sets the given options on all endpoints that support them, replacing values of the same kind.
    ///
    /// - Throws: A `CommandFailure` if no endpoint supports a given option, can use the given password, or has the transport that a setting
    ///   names. A `ValidationError` if the value of an option is invalid.
    func apply(to endpoints: inout [Endpoint], of transports: RegisteredTransports) throws {
        for option in given
        where !endpoints.contains(where: { !(transports[$0]?.options ?? []).isDisjoint(with: option.groups) }) {
            throw CommandFailure(.usage, "No endpoint of the account supports \(option.name). Omit the option.")
        }
        if passwordEnv != nil || passwordFile != nil, !endpoints.contains(where: { Self.canUsePassword($0, transports) }),
            let endpoint = endpoints.first
        {
            throw CommandFailure(
                .usage, "The password needs a user, and \(endpoint.location) has none. Write the user before the host: https://user@host/."
            )
        }
        let named = try namedSettings()
        for setting in named {
            guard let transport = setting.transport, !endpoints.contains(where: { $0.transport == transport }) else { continue }
            throw CommandFailure(.usage, "--setting names the transport \"\(transport)\", but no endpoint of the account uses it.")
        }
        for index in endpoints.indices {
            for setting in named { setting.apply(to: &endpoints[index]) }
            try apply(to: &endpoints[index], of: transports)
        }
    }

    var isEmpty: Bool { given.isEmpty && setting.isEmpty }

    /// The given options, except `--setting`. A transport supports an option if it supports at least one of the option's groups.
    private var given: [(groups: Set<RegisteredTransport.EndpointOption>, name: String)] {
        let all: [(Set<RegisteredTransport.EndpointOption>, String, Bool)] = [
            ([.token], "--token-env", tokenEnv != nil), ([.token], "--token-file", tokenFile != nil),
            ([.password], "--password-env", passwordEnv != nil), ([.password], "--password-file", passwordFile != nil),
            (Self.passphraseGroups, "--passphrase-env", passphraseEnv != nil),
            (Self.passphraseGroups, "--passphrase-file", passphraseFile != nil),
            ([.keys], "--identity", !identity.isEmpty), ([.keys], "--known-hosts", knownHosts != nil),
            ([.keys], "--host-key", hostKey != nil), ([.authorities], "--ca-file", caFile != nil),
            ([.clientCertificate], "--client-certificate", clientCertificate != nil),
            ([.clientCertificate], "--client-key", clientKey != nil),
            ([.proxy], "--proxy-password-env", proxyPasswordEnv != nil), ([.proxy], "--proxy-password-file", proxyPasswordFile != nil),
            ([.headers], "--header", !header.isEmpty), ([.headers], "--header-env", !headerEnv.isEmpty),
            ([.headers], "--header-file", !headerFile.isEmpty),
        ]
        return all.filter(\.2).map { ($0.0, $0.1) }
    }

    /// A passphrase decrypts an SSH key or the key of a client certificate.
    private static let passphraseGroups: Set<RegisteredTransport.EndpointOption> = [.passphrase, .clientCertificate]

    private func apply(to endpoint: inout Endpoint, of transports: RegisteredTransports) throws {
        let options = transports[endpoint]?.options ?? []
        let settings = try settings().filter { options.contains(Self.option(ofSetting: $0.key)) }
        let headers = options.contains(.headers) ? Set(try headerFields.map { $0.name.lowercased() }) : []
        for key in endpoint.settings.keys where key.hasPrefix(Self.headerPrefix) {
            if headers.contains(key.dropFirst(Self.headerPrefix.count).lowercased()) { endpoint.settings[key] = nil }
        }
        endpoint.settings.merge(settings) { $1 }
        let credentials = try credentials().filter { reference in
            guard options.contains(Self.option(of: reference.kind)) else { return false }
            return switch reference.kind {
            case .clientKeyPassphrase: endpoint.settings["clientCertificate"] != nil
            case .proxyPassword: endpoint.settings["proxy"] != nil
            case .password: Self.canUsePassword(endpoint, transports)
            default: true
            }
        }
        let kinds = Set(credentials.map(\.kind)).subtracting([.header])
        endpoint.credentials.removeAll { kinds.contains($0.kind) || $0.name.map { headers.contains($0.lowercased()) } ?? false }
        endpoint.credentials += credentials
    }

    private static func canUsePassword(_ endpoint: Endpoint, _ transports: RegisteredTransports) -> Bool {
        transports[endpoint]?.passwordNeedsUser == false || (try? endpoint.validate())?.user() != nil
    }

    private static let headerPrefix = "header."

    private static func option(of kind: CredentialReference.Kind) -> RegisteredTransport.EndpointOption {
        switch kind {
        case .bearerToken: .token
        case .password: .password
        case .keyPassphrase: .passphrase
        case .clientKeyPassphrase: .clientCertificate
        case .proxyPassword: .proxy
        default: .headers
        }
    }

    private static func option(ofSetting key: String) -> RegisteredTransport.EndpointOption {
        switch key {
        case "caFile": .authorities
        case "clientCertificate", "clientKey": .clientCertificate
        case "identity", "knownHosts", "hostKey": .keys
        default: .headers
        }
    }

    private func credentials() throws -> [CredentialReference] {
        var references: [CredentialReference] = []
        if let tokenEnv { references.append(.bearer(try variable(tokenEnv, "--token-env"))) }
        if let tokenFile { references.append(.bearer(try file(tokenFile.path, "--token-file"))) }
        if let passwordEnv { references.append(.password(try variable(passwordEnv, "--password-env"))) }
        if let passwordFile { references.append(.password(try file(passwordFile.path, "--password-file"))) }
        let passphrase =
            if let passphraseEnv {
                try variable(passphraseEnv, "--passphrase-env")
            } else {
                try passphraseFile.map { try file($0.path, "--passphrase-file") }
            }
        if let passphrase {
            references += [.keyPassphrase(passphrase), CredentialReference(kind: .clientKeyPassphrase, source: passphrase)]
        }
        let proxyPassword =
            if let proxyPasswordEnv {
                try variable(proxyPasswordEnv, "--proxy-password-env")
            } else {
                try proxyPasswordFile.map { try file($0.path, "--proxy-password-file") }
            }
        if let proxyPassword { references.append(CredentialReference(kind: .proxyPassword, source: proxyPassword)) }
        for field in try fields(headerEnv, "--header-env") {
            references.append(.header(field.name, try variable(field.value, "--header-env")))
        }
        for field in try fields(headerFile, "--header-file") {
            let path = FilePath(bytes: ProcessArguments.bytes(of: field.value))
            references.append(.header(field.name, try file(path, "--header-file")))
        }
        return references
    }

    /// Returns the endpoint settings, by name, that options other than `--setting` set.
    private func settings() throws -> [String: String] {
        var settings: [String: String] = [:]
        if let caFile { settings["caFile"] = try readableFile(caFile.path, "--ca-file") }
        if let clientCertificate {
            settings["clientCertificate"] = try readableFile(clientCertificate.path, "--client-certificate")
        }
        if let clientKey { settings["clientKey"] = try readableFile(clientKey.path, "--client-key") }
        if !identity.isEmpty {
            settings["identity"] = try identity.map { try readableFile($0.path, "--identity") }.joined(separator: "\n")
        }
        // The file need not exist: the policy accept-new creates it.
        if let knownHosts { settings["knownHosts"] = try filePath(knownHosts.path, "--known-hosts") }
        if let hostKey { settings["hostKey"] = hostKey }
        for field in try fields(header, "--header") {
            guard !field.suggestsSecret else {
                throw ValidationError(
                    "The header \(field.name) carries a secret. Name its source instead: --header-env '\(field.name): VARIABLE' or --header-file '\(field.name): FILE'."
                )
            }
            settings[Self.headerPrefix + field.name] = field.value
        }
        return settings
    }

    private func namedSettings() throws -> [NamedSetting] {
        try setting.map { try NamedSetting($0, of: CommandContext.current.transports) }
    }

    private var headerFields: [HeaderField] {
        get throws {
            try fields(header, "--header") + fields(headerEnv, "--header-env") + fields(headerFile, "--header-file")
        }
    }

    private func fields(_ texts: [String], _ option: String) throws -> [HeaderField] {
        try texts.map { try HeaderField($0, option: option) }
    }

    private func variable(_ name: String, _ option: String) throws -> CredentialReference.Source {
        let isName =
            name.first.map { $0 == "_" || $0.isASCII && $0.isLetter } ?? false
            && name.allSatisfy { $0 == "_" || $0.isASCII && ($0.isLetter || $0.isNumber) }
        // The user may have passed the secret itself, so the message does not repeat the argument.
        guard isName else { throw ValidationError("\(option) takes the name of an environment variable, not the secret.") }
        return .environment(name)
    }

    /// The file need not exist yet, because each connection reads it again.
    private func file(_ path: FilePath, _ option: String) throws -> CredentialReference.Source {
        let text = try filePath(path, option)
        guard !path.isFolder else {
            throw ValidationError("\(text), given to \(option), is a folder. Name the file with the secret.")
        }
        if let size = path.size, size > Self.secretLimit {
            throw ValidationError(
                "The file \(text), given to \(option), is \(size) bytes long. A secret must have at most \(Self.secretLimit) bytes.")
        }
        return .file(text)
    }

    /// The maximum size of a secret in bytes.
    private static let secretLimit: Int64 = 1 << 16

    private func readableFile(_ path: FilePath, _ option: String) throws -> String {
        let path = try filePath(path, option)
        guard !FilePath(path).isFolder else { throw ValidationError("\(path), given to \(option), is a folder. Name a file.") }
        guard FileManager.default.isReadableFile(atPath: path) else {
            throw ValidationError("Cannot read the file \(path), given to \(option).")
        }
        return path
    }

    private func filePath(_ path: FilePath, _ option: String) throws -> String {
        guard !path.isEmpty else { throw ValidationError("\(option) needs the path of a file.") }
        guard let text = String(validating: path.absolute.bytes, as: UTF8.self) else {
            throw ValidationError("The path given to \(option) is not UTF-8. Accounts can't store it; rename the file.")
        }
        return text
    }
}
