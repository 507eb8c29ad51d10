import ArgumentParser
import TransferCore
import TransferKit

/// How new sessions are run.
struct TransferOptions: ParsableArguments {
    @Option(help: ArgumentHelp("A name and a value to tell the server with each file; can be repeated.", valueName: "name=value"))
    var metadata: [String] = []

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Bytes per second for the session, with K, M or G for the binary units; 0 for no limit.", valueName: "rate"))
    var rate: ByteCount?

    @Option(
        help: "What is compared at the end: \(Self.verifications).",
        completion: .list(Verification.allCases.map(\.rawValue)), transform: Self.verification)
    var verify: Verification?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "How many files may be in flight at once, and parts of one large file, 1 to 64; otherwise one large file, or six small ones (64 by SFTP).",
            valueName: "number"))
    var parallel: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "The most bytes in one request, with K, M or G for the binary units; otherwise as many as the server takes.", valueName: "size")
    )
    var chunk: ByteCount?

    @Option(
        help: ArgumentHelp(
            "What this session wants otherwise than its account's endpoint, by the name of a setting; can be repeated.",
            valueName: "name=value"))
    var setting: [String] = []

    @Option(
        help: ArgumentHelp(
            "A file with more of them, which others on this machine can't see as they can this command's arguments: NAME=VALUE in each line, but for empty ones and those that begin with #. Nobody but its owner may be able to read it. Or - for standard input.",
            valueName: "file"))
    var settingsFile: PathArgument?

    @Option(
        help: ArgumentHelp(
            "The checksum that the file has which is received: sha256, sha512, sha1 or md5, a colon, and hexadecimal digits.",
            valueName: "checksum"))
    var checksum: String?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Seconds in which no byte moves, after which an attempt is given up and made again, by any transport: none that is sent or received, and none that the server confirms. The wait for the answer to the last byte does not count. Otherwise 60.",
            valueName: "seconds"))
    var stallTimeout: Double?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Seconds that the server may take from the last byte of a file above 1 MiB to its answer, as one that stores or checks the file first. It is never less than --stall-timeout. Otherwise 300.",
            valueName: "seconds"))
    var responseTimeout: Double?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Seconds that an outage of all servers of the account may last until the session fails. Counted in each process from the first attempt that met it (never).",
            valueName: "seconds"))
    var giveUpAfter: Double?

    func validate() throws {
        if let giveUpAfter, !(giveUpAfter >= 0 && giveUpAfter <= 31_622_400) {
            throw ValidationError("--give-up-after takes a number of seconds from 0 to a year (31622400), and not \(giveUpAfter).")
        }
        for (option, seconds) in [("--stall-timeout", stallTimeout), ("--response-timeout", responseTimeout)] {
            guard let seconds else { continue }
            guard seconds > 0, seconds <= 86_400 else {
                throw ValidationError("\(option) takes a number of seconds above 0, a day (86400) at most, and not \(seconds).")
            }
        }
        if let parallel, !(1...64).contains(parallel) {
            throw ValidationError("--parallel takes a number from 1 to 64, and not \(parallel).")
        }
        if let chunk, chunk.bytes < 1 { throw ValidationError("--chunk takes a size of at least 1 byte.") }
        _ = try Self.values(metadata, of: "--metadata")
        _ = try Self.values(setting, of: "--setting")
    }

    /// Whether standard input is for settings.
    var readsStandardInput: Bool { settingsFile?.path == SettingsFile.standardInput }

    /// Reads the settings file, if there is one.
    func options() async throws -> SessionOptions {
        let defaults = SessionOptions()
        return SessionOptions(
            metadata: try Self.values(metadata, of: "--metadata"), retry: RetryPolicy(giveUpAfter: giveUpAfter.map { .seconds($0) }),
            stallTimeout: stallTimeout.map { .seconds($0) } ?? defaults.stallTimeout,
            responseTimeout: responseTimeout.map { .seconds($0) } ?? defaults.responseTimeout, rateLimit: rate?.limit,
            filesInFlight: parallel,
            verification: verify ?? defaults.verification, chunkSize: chunk?.bytes, parallel: parallel ?? 1,
            settings: try await settings(), expectedChecksum: checksum?.lowercased())
    }

    private func settings() async throws -> [String: String] {
        let settings = try Self.values(setting, of: "--setting")
        guard let settingsFile else { return settings }
        return try settings.merging(try await SettingsFile.read(settingsFile.path)) { _, _ in
            throw CommandFailure(.usage, "A setting is given by --setting and in the settings file; leave it out of one of them.")
        }
    }

    private static let verifications = Verification.allCases.map(\.rawValue).joined(separator: ", ")

    private static func verification(_ text: String) throws -> Verification {
        guard let verification = Verification(rawValue: text) else { throw ValidationError("--verify takes one of \(verifications).") }
        return verification
    }

    private static func values(_ texts: [String], of option: String) throws -> [String: String] {
        var values: [String: String] = [:]
        for text in texts {
            guard ProcessArguments.isText(text), let equals = text.firstIndex(of: "="), equals != text.startIndex else {
                throw ValidationError("\(option) takes NAME=VALUE.")
            }
            let name = String(text[..<equals])
            guard values.updateValue(String(text[text.index(after: equals)...]), forKey: name) == nil else {
                throw ValidationError("\(option) names \"\(name)\" twice.")
            }
        }
        return values
    }
}

/// Which way files go.
struct DirectionOptions: ParsableArguments {
    @Flag(help: "Receive: the paths are names below the endpoint's folder, and --to is a local folder, the working directory otherwise.")
    var download = false

    @Option(
        help:
            "What happens to a file that is there already, where a download or an SFTP upload goes: \(Self.policies). Without this option nothing is replaced there. A server that takes PUT or forms decides by itself, and for such an account the option is refused. A tus server keeps each file as a new upload: always has no effect there, and what asks for a comparison is refused.",
        completion: .list(OverwritePolicy.allCases.map(\.rawValue)), transform: Self.policy)
    var overwrite: OverwritePolicy?

    @Option(
        help:
            "What happens to symbolic links in a folder that is sent: skip leaves them out, follow-files sends what links to files lead to, follow also folders (skip). A link that is named itself is always followed.",
        completion: .list(Self.linkPolicies.map(\.word)), transform: Self.links)
    var symlinks: SymbolicLinkPolicy?

    func validate() throws {
        if download, symlinks != nil { throw ValidationError("--symlinks is for folders that are sent; leave it out with --download.") }
    }

    private static let linkPolicies: [(word: String, policy: SymbolicLinkPolicy)] = [
        ("skip", .skip), ("follow", .follow), ("follow-files", .followFiles),
    ]

    private static func links(_ text: String) throws -> SymbolicLinkPolicy {
        guard let policy = linkPolicies.first(where: { $0.word == text })?.policy else {
            throw ValidationError("--symlinks takes one of \(linkPolicies.map(\.word).joined(separator: ", ")).")
        }
        return policy
    }

    private static let policies = OverwritePolicy.allCases.map(\.rawValue).joined(separator: ", ")

    private static func policy(_ text: String) throws -> OverwritePolicy {
        guard let policy = OverwritePolicy(rawValue: text) else { throw ValidationError("--overwrite takes one of \(policies).") }
        return policy
    }
}
