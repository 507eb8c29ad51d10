import ArgumentParser
import TransferCore
import TransferKit

struct UploadOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Metadata to send with each file; repeatable.", valueName: "name=value"))
    var metadata: [String] = []

    @Option(
        help: ArgumentHelp("The URL for new tus uploads (default: the endpoint).", valueName: "url"),
        transform: TextArgument.text)
    var creationURL: String?

    func validate() throws { _ = try metadataValues() }

    func metadataValues() throws -> [String: String] { try NamedValues.read(metadata, of: "--metadata") }

    var firstGiven: String? { metadata.isEmpty ? creationURL.map { _ in "--creation-url" } : "--metadata" }
}

struct UploadItemOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A field NAME=TEXT or a file NAME=@FILE; repeatable.",
            valueName: "name=value"))
    var form: [FormArgument] = []

    @Flag(help: "Copy the files into the storage folder first.")
    var copy = false

    @Option(
        help: "skip, follow-files or follow links (default: skip).",
        completion: .list(Self.linkPolicies.map(\.word)), transform: Self.links)
    var symlinks: SymbolicLinkPolicy?

    var firstGiven: String? { form.isEmpty ? copy ? "--copy" : symlinks.map { _ in "--symlinks" } : "--form" }

    private static let linkPolicies: [(word: String, policy: SymbolicLinkPolicy)] = [
        ("skip", .skip), ("follow", .follow), ("follow-files", .followFiles),
    ]

    private static func links(_ text: String) throws -> SymbolicLinkPolicy {
        guard let policy = linkPolicies.first(where: { $0.word == text })?.policy else {
            throw ValidationError("--symlinks takes one of \(linkPolicies.map(\.word).joined(separator: ", ")).")
        }
        return policy
    }
}

struct DownloadOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The expected checksum, such as sha256:HEX.",
            valueName: "checksum"))
    var checksum: String?
}
