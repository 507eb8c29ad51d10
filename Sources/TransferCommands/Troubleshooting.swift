package import SystemPackage
import TransferControl
package import TransferCore
package import TransferKit

/// The sections of the article "Troubleshooting" that explain errors.
package enum Troubleshooting {
    /// The sections about transfer errors, by code.
    package static let transferSections: [TransferError.Code: String] = [
        .connectionRefused: servers, .hostNotFound: servers, .connectionLost: servers, .timedOut: servers, .stalled: servers,
        .notThisProtocol: servers, .serverError: servers, .serverUnavailable: servers, .rejected: servers,
        .serverNotTrusted: "Certificates and host keys",
        .credentialsRejected: credentials, .credentialsUnavailable: credentials, .forbidden: credentials,
        .tooLarge: uploads, .remoteFull: uploads, .producerGone: uploads, .sourceChanged: uploads, .noSuchFile: uploads,
        .notReadable: uploads,
        .fileExists: "Downloads", .noSuchRemoteFile: "Downloads", .checksumMismatch: "Downloads",
        .diskFull: "This machine",
        .itemsFailed: calls,
    ]

    /// The sections about queue errors, by code.
    package static let queueSections: [QueueError.Code: String] = [
        .storageInUse: storage, .storageTooNew: storage, .storageUnavailable: storage, .storageDamaged: storage,
        .ownerUnreachable: owner, .ownerLost: owner, .ownerSilent: owner, .tooManySubscribers: owner, .unknownProtocolVersion: owner,
        .staleOrder: calls, .invalidTransition: calls, .duplicate: calls, .hasDependents: calls,
    ]

    private static let servers = "Servers and networks"
    private static let credentials = "Credentials"
    private static let uploads = "Uploads"
    private static let storage = "Storage folder"
    private static let owner = "Owner of the queue"
    private static let calls = "Calls and commands"

    /// The section about an error, as a reference for the user; nil if the article does not explain the error.
    static func reference(for error: TransferError?) -> String? { error.flatMap { transferSections[$0.code] }.map(reference) }

    /// The section about an error, as a reference for the user; nil if the article does not explain the error.
    static func reference(for code: QueueError.Code) -> String? { queueSections[code].map(reference) }

    private static func reference(to section: String) -> String { "See \(location), \"\(section)\"." }

    /// The location of the article, for messages: its installed path, or its path in the repository.
    static let location = articleLocation(for: AgentLaunch.executable)

    /// The path of the article that is installed with a program, such as `/usr/share/doc/transferq/Troubleshooting.md` for `/usr/bin/transferq`; the
    /// path in the repository if there is no such file. Blocks.
    package static func articleLocation(for program: FilePath) -> String {
        let installation = program.lexicallyNormalized().removingLastComponent().removingLastComponent()
        let article = installation.appending("share/doc/transferq/Troubleshooting.md")
        return article.size == nil ? "Sources/transferq/transferq.docc/Troubleshooting.md in the repository" : article.string
    }
}
