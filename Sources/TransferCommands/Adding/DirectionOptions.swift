import ArgumentParser
import TransferCore
import TransferKit

/// The options of uploads.
struct UploadOptions: ParsableArguments {
    @Option(help: ArgumentHelp("A name and value to send to the server with each file; repeatable.", valueName: "name=value"))
    var metadata: [String] = []

    @Option(
        help: ArgumentHelp("The URL at which tus uploads are created (default: the endpoint's address).", valueName: "url"),
        transform: TextArgument.text)
    var creationURL: String?

    func validate() throws { _ = try metadataValues() }

    /// The metadata by name.
    func metadataValues() throws -> [String: String] { try NamedValues.read(metadata, of: "--metadata") }

    /// The first given option, for error messages; nil if no option is given.
    var firstGiven: String? { metadata.isEmpty ? creationURL.map { _ in "--creation-url" } : "--metadata" }
}

/// The options for the files of an upload.
struct UploadItemOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "A part of a form that is sent in one request, instead of paths: NAME=TEXT for a text field, or NAME=@FILE for a file; repeatable, in the given order. After FILE, ;name=NAME and ;type=TYPE set the file's name and media type for the server.",
            valueName: "name=value"))
    var form: [FormArgument] = []

    @Flag(help: "Copy the files into the storage folder first, so that they can then be changed or deleted.")
    var copy = false

    @Option(
        help:
            "Symbolic links in uploaded folders: skip, follow-files (links to files only) or follow (all links). A link given as a path is always followed (default: skip).",
        completion: .list(Self.linkPolicies.map(\.word)), transform: Self.links)
    var symlinks: SymbolicLinkPolicy?

    /// The first given option, for error messages; nil if no option is given.
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

/// The options of downloads.
struct DownloadOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The expected checksum of the downloaded file: sha256, sha512, sha1 or md5, a colon, and hexadecimal digits.",
            valueName: "checksum"))
    var checksum: String?
}
