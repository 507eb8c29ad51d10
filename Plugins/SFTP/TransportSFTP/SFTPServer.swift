import TransferCore

/// The validated address, options and credentials of an endpoint.
struct SFTPServer: Sendable {
    let address: SFTPAddress
    let options: SFTPOptions
    let route: ServerRoute
    let password: CredentialReference?
    let passphrase: CredentialReference?

    private static let credentials: Set<CredentialReference.Kind> = [.password, .keyPassphrase, .proxyPassword]

    /// - Throws: A ``TransferError`` with the code `invalidEndpoint`, or of the class `unsupported` for a credential of an unsupported kind.
    init(_ endpoint: Endpoint) throws(TransferError) {
        for credential in endpoint.credentials where !Self.credentials.contains(credential.kind) {
            throw TransferError(
                .unsupported, .unsupported, "The SFTP transport does not use credentials of the kind \(credential.kind.rawValue).")
        }
        func credential(_ kind: CredentialReference.Kind) -> CredentialReference? { endpoint.credentials.first { $0.kind == kind } }
        address = try SFTPAddress(endpoint)
        options = try SFTPOptions(settings: endpoint.settings)
        password = credential(.password)
        passphrase = credential(.keyPassphrase)
        if let command = options.proxyCommand {
            try ServerRoute.check(command, address)
            route = .command(command)
        } else if options.network != NetworkOptions() {
            route = .network(options.network, proxyPassword: credential(.proxyPassword))
        } else {
            route = .direct
        }
    }
}
