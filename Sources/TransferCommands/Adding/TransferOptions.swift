import ArgumentParser
import TransferCore
import TransferKit
import TransferOutput

/// The transfer options of the commands that add sessions, and of `set`.
struct TransferOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "What to do with existing files (default: never).", discussion: "Policies: \(Self.policies).", valueName: "policy"),
        completion: .list(OverwritePolicy.allCases.map(\.rawValue)), transform: Self.policy)
    var overwrite: OverwritePolicy?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Bytes/s, such as 500K or 2MB (default: 0, no limit).", valueName: "rate"))
    var rate: ByteCount?

    @Option(
        help: ArgumentHelp(
            "Compare \(Self.verifications) (default: size).", valueName: "property"),
        completion: .list(Verification.allCases.map(\.rawValue)), transform: Self.verification)
    var verify: Verification?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Files and segments in flight, 1 to 64 (default: auto).",
            valueName: "number"))
    var parallel: Int?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Bytes in one request (default: the endpoint's value).",
            valueName: "size"))
    var chunk: ByteCount?

    @Option(
        help: ArgumentHelp(
            "A setting for this session; repeatable.",
            discussion: CommandContext.current.transports.sessionSettings, valueName: "name=value"))
    var setting: [String] = []

    @Option(
        help: ArgumentHelp(
            "A private file with NAME=VALUE lines, or -.",
            valueName: "file"))
    var settingsFile: PathArgument?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Retry after this time without progress (default: 60).",
            valueName: "seconds"))
    var stallTimeout: Double?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Seconds to wait for the last response (default: 300).",
            valueName: "seconds"))
    var responseTimeout: Double?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Fail after an outage of this length (default: never).",
            valueName: "seconds"))
    var giveUpAfter: Double?

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Fail this long after the first start (default: never).",
            valueName: "seconds"))
    var deadline: Double?

    @Flag(inversion: .prefixedNo, help: "Wait on a metered network (default: run).")
    var onlyUnmetered: Bool?

    @Flag(help: "Report each file in events (run --progress json).")
    var itemProgress = false

    func validate() throws {
        if let deadline, !(deadline >= 1 && deadline <= 31_622_400) {
            throw ValidationError("--deadline must be 1 to 31622400 seconds (a year), not \(deadline).")
        }
        if let giveUpAfter, !(giveUpAfter >= 0 && giveUpAfter <= 31_622_400) {
            throw ValidationError("--give-up-after must be 0 to 31622400 seconds (a year), not \(giveUpAfter).")
        }
        for (option, seconds) in [("--stall-timeout", stallTimeout), ("--response-timeout", responseTimeout)] {
            guard let seconds else { continue }
            guard seconds > 0, seconds <= 86_400 else {
                throw ValidationError("\(option) must be more than 0 and at most 86400 seconds, not \(seconds).")
            }
        }
        if let parallel, !(1...64).contains(parallel) {
            throw ValidationError("--parallel must be 1 to 64, not \(parallel).")
        }
        if let chunk, chunk.bytes < 1 { throw ValidationError("--chunk must be at least 1 byte.") }
        _ = try NamedValues.read(setting, of: "--setting")
    }

    var readsStandardInput: Bool { settingsFile?.path == SettingsFile.standardInput }

    func options(_ upload: UploadOptions?, _ download: DownloadOptions?) async throws -> SessionOptions {
        let defaults = SessionOptions()
        return SessionOptions(
            metadata: try upload?.metadataValues() ?? [:], retry: RetryPolicy(giveUpAfter: giveUpAfter.map { .seconds($0) }),
            stallTimeout: stallTimeout.map { .seconds($0) } ?? defaults.stallTimeout,
            responseTimeout: responseTimeout.map { .seconds($0) } ?? defaults.responseTimeout,
            deadline: deadline.map { .seconds($0) }, rateLimit: rate?.limit,
            filesInFlight: parallel,
            verification: verify ?? defaults.verification, reportsItemProgress: itemProgress,
            allowsExpensiveNetwork: onlyUnmetered != true, chunkSize: chunk?.bytes,
            segmentsPerFile: parallel ?? 1, overwrite: overwrite ?? defaults.overwrite,
            settings: try await settings(), creationURL: upload?.creationURL, expectedChecksum: download?.checksum?.lowercased())
    }

    func update(_ upload: UploadOptions, _ download: DownloadOptions) async throws -> SessionUpdate {
        let (metadata, settings) = (try upload.metadataValues(), try await settings())
        var update = SessionUpdate(
            rateLimit: rate.map { $0.bytes > 0 ? .bytesPerSecond($0.bytes) : .unlimited },
            retry: giveUpAfter.map { RetryPolicy(giveUpAfter: .seconds($0)) }, verification: verify,
            metadata: metadata.isEmpty ? nil : metadata, overwrite: overwrite, settings: settings.isEmpty ? nil : settings)
        if itemProgress { update.reportsItemProgress = true }
        update.allowsExpensiveNetwork = onlyUnmetered.map { !$0 }
        update.filesInFlight = parallel.map { .set($0) }
        update.segmentsPerFile = parallel
        update.chunkSize = chunk.map { .set($0.bytes) }
        update.creationURL = upload.creationURL.map { .set($0) }
        update.expectedChecksum = download.checksum.map { .set($0.lowercased()) }
        update.stallTimeout = stallTimeout.map { .seconds($0) }
        update.responseTimeout = responseTimeout.map { .seconds($0) }
        update.deadline = deadline.map { .set(.seconds($0)) }
        return update
    }

    private func settings() async throws -> [String: String] {
        let settings = try NamedValues.read(setting, of: "--setting")
        guard let settingsFile else { return settings }
        return try settings.merging(try await SettingsFile.read(settingsFile.path)) { _, _ in
            throw CommandFailure(.usage, "A setting is given both by --setting and in the settings file. Remove one of the two.")
        }
    }

    private static let verifications = Verification.allCases.map(\.rawValue).joined(separator: ", ")

    private static func verification(_ text: String) throws -> Verification {
        guard let verification = Verification(rawValue: text) else { throw ValidationError("--verify takes one of \(verifications).") }
        return verification
    }

    static let policies = OverwritePolicy.allCases.map(\.rawValue).joined(separator: ", ")

    static func policy(_ text: String) throws -> OverwritePolicy {
        guard let policy = OverwritePolicy(rawValue: text) else { throw ValidationError("--overwrite takes one of \(policies).") }
        return policy
    }
}
