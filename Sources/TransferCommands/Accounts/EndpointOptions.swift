import ArgumentParser
import Foundation
import SystemPackage
import TransferCore

/// What holds for all endpoints of an account that is added or changed.
struct EndpointOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The environment variable that holds a bearer token.", valueName: "variable"))
    var tokenEnv: String?

    @Option(help: ArgumentHelp("The file that holds a bearer token.", valueName: "file"))
    var tokenFile: PathArgument?

    @Option(help: ArgumentHelp("The environment variable that holds the password of the user in the URL.", valueName: "variable"))
    var passwordEnv: String?

    @Option(help: ArgumentHelp("The file that holds the password of the user in the URL.", valueName: "file"))
    var passwordFile: PathArgument?

    @Option(help: ArgumentHelp("Certificates of the authorities to trust instead of the system's (PEM).", valueName: "file"))
    var caFile: PathArgument?

    @Option(help: ArgumentHelp("A header to send with each request; not for secrets.", valueName: "name: value"))
    var header: [String] = []

    @Option(help: ArgumentHelp("A header whose value is in an environment variable.", valueName: "name: variable"))
    var headerEnv: [String] = []

    @Option(help: ArgumentHelp("A header whose value is in a file.", valueName: "name: file"))
    var headerFile: [String] = []

    func validate() throws {
        if tokenEnv != nil, tokenFile != nil { throw ValidationError("Give either --token-env or --token-file.") }
        if passwordEnv != nil, passwordFile != nil { throw ValidationError("Give either --password-env or --password-file.") }
        var names: Set<String> = []
        for field in try headerFields {
            guard names.insert(field.name.lowercased()).inserted else {
                throw ValidationError("The header \(field.name) is given twice.")
            }
        }
        _ = try credentials()
        _ = try settings()
    }

    /// Puts what was given into an endpoint, in place of what it had of the same kind.
    func apply(to endpoint: inout Endpoint) throws {
        let (credentials, settings) = (try credentials(), try settings())
        let headers = Set(try headerFields.map { $0.name.lowercased() })
        let kinds = Set(credentials.map(\.kind)).subtracting([.header])
        endpoint.credentials.removeAll { kinds.contains($0.kind) || $0.name.map { headers.contains($0.lowercased()) } ?? false }
        endpoint.credentials += credentials
        for key in endpoint.settings.keys where key.hasPrefix(Self.headerKey) {
            if headers.contains(key.dropFirst(Self.headerKey.count).lowercased()) { endpoint.settings[key] = nil }
        }
        endpoint.settings.merge(settings) { $1 }
    }

    private static let headerKey = "header."

    /// Where the secrets come from.
    private func credentials() throws -> [CredentialReference] {
        var references: [CredentialReference] = []
        if let tokenEnv { references.append(.bearer(try variable(tokenEnv, "--token-env"))) }
        if let tokenFile { references.append(.bearer(try file(tokenFile.path, "--token-file"))) }
        if let passwordEnv { references.append(.password(try variable(passwordEnv, "--password-env"))) }
        if let passwordFile { references.append(.password(try file(passwordFile.path, "--password-file"))) }
        for field in try fields(headerEnv, "--header-env") {
            references.append(.header(field.name, try variable(field.value, "--header-env")))
        }
        for field in try fields(headerFile, "--header-file") {
            let path = FilePath(bytes: ProcessArguments.bytes(of: field.value))
            references.append(.header(field.name, try file(path, "--header-file")))
        }
        return references
    }

    /// What only the transport understands.
    private func settings() throws -> [String: String] {
        var settings: [String: String] = [:]
        if let caFile {
            let path = try filePath(caFile.path, "--ca-file")
            guard FileManager.default.isReadableFile(atPath: path) else {
                throw ValidationError("The file \(path) given to --ca-file can't be read.")
            }
            settings["caFile"] = path
        }
        for field in try fields(header, "--header") {
            guard !field.bearsSecret else {
                throw ValidationError(
                    "The header \(field.name) carries a secret; name where it is: --header-env '\(field.name): VARIABLE' or --header-file '\(field.name): FILE'."
                )
            }
            settings[Self.headerKey + field.name] = field.value
        }
        return settings
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
        // What was given may be the secret itself, so it is not repeated.
        guard isName else { throw ValidationError("\(option) takes the name of an environment variable, not the secret.") }
        return .environment(name)
    }

    private func file(_ path: FilePath, _ option: String) throws -> CredentialReference.Source {
        .file(try filePath(path, option))
    }

    private func filePath(_ path: FilePath, _ option: String) throws -> String {
        guard !path.isEmpty else { throw ValidationError("\(option) needs the path of a file.") }
        guard let text = String(validating: path.absolute.bytes, as: UTF8.self) else {
            throw ValidationError("The path given to \(option) is not UTF-8, which can't be kept in an account; rename the file.")
        }
        return text
    }
}
