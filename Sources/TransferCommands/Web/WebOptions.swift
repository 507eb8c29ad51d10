package import ArgumentParser
package import SystemPackage

/// The options of the web server.
package struct WebOptions: ParsableArguments {
    @Option(help: ArgumentHelp("The address and port (default: 127.0.0.1:8420).", valueName: "address"))
    package var listen: String?

    @Option(help: ArgumentHelp("A host name in the URLs of the server; repeatable.", valueName: "host"), transform: TextArgument.text)
    package var name: [String] = []

    @Flag(help: "Allow no changes.")
    package var readOnly = false

    @Option(help: ArgumentHelp("The TLS certificate chain, as a PEM file.", valueName: "file"))
    var certificate: PathArgument?

    @Option(help: ArgumentHelp("The private key of the certificate, as a PEM file.", valueName: "file"))
    var key: PathArgument?

    package init() {}

    package func validate() throws {
        if (certificate == nil) != (key == nil) { throw ValidationError("--certificate and --key must be used together.") }
    }

    /// The absolute paths of the certificate chain and its key; nil if neither is given.
    package var certificateAndKey: (certificate: FilePath, key: FilePath)? {
        guard let certificate, let key else { return nil }
        return (certificate.path.absolute, key.path.absolute)
    }
}
