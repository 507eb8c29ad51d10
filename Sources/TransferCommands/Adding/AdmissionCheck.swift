import Foundation
import SystemPackage
import TransferCore
import TransferKit

/// Checks whether an account's endpoints can perform new sessions, and returns warnings about options without effect.
struct AdmissionCheck {
    let endpoints: [Endpoint]
    let options: SessionOptions
    let transports: RegisteredTransports

    private var attemptOptions: AttemptOptions {
        AttemptOptions(
            metadata: options.metadata, headers: options.headers, verification: options.verification, chunkSize: options.chunkSize,
            segmentsPerFile: options.segmentsPerFile, overwrite: options.overwrite, creationURL: options.creationURL,
            expectedChecksum: options.expectedChecksum, settings: options.settings)
    }

    private func uploadOptions(_ endpoint: Endpoint) -> RegisteredTransport.UploadOptions {
        transports[endpoint]?.uploadOptions ?? RegisteredTransport.UploadOptions()
    }

    /// Checks the sessions' options against the rules of the endpoints' transports.
    ///
    /// - Throws: A `CommandFailure` if no endpoint supports the options, or if the options are invalid at any endpoint, for example because of
    ///   a forbidden header.
    func check(for direction: TransferDirection) throws(CommandFailure) {
        let options = attemptOptions
        try check { endpoint throws(TransferError) in try transports.validate(options, for: direction, at: endpoint) }
    }

    /// Checks that at least one endpoint can list folders. The download of a folder requires this.
    ///
    /// - Throws: A `CommandFailure` if no endpoint can list folders.
    func check(folder: PathArgument) throws(CommandFailure) {
        let name = folder.isEndpointFolder ? "The endpoint's folder" : "\(folder.path)/"
        try check { endpoint throws(TransferError) in
            do throws(TransferError) {
                try transports.validateListing(at: endpoint)
            } catch {
                throw TransferError(
                    error.failureClass, error.code, "\(name) can't be downloaded from \(endpoint.location). \(error.message)")
            }
        }
    }

    /// Checks that at least one endpoint can receive the form of `--form`.
    ///
    /// - Throws: A `CommandFailure` if no endpoint can receive forms, or if the options are invalid for forms at any endpoint.
    func checkForms() throws(CommandFailure) {
        let options = attemptOptions
        try check { endpoint throws(TransferError) in try endpoint.checkForms(options, with: transports[endpoint]?.transport) }
    }

    private func check(_ validate: (Endpoint) throws(TransferError) -> Void) throws(CommandFailure) {
        do throws(TransferError) { try endpoints.check(by: validate) } catch { throw CommandFailure(.usage, error.message) }
    }

    /// Checks the overwrite policy of uploads.
    ///
    /// - Returns: Warnings about endpoints that ignore the policy.
    /// - Throws: A `CommandFailure` if an endpoint might replace files despite the policy, or if the policy is `skip`, `different` or `newer` and no
    ///   endpoint can apply it.
    func check(_ overwrite: OverwritePolicy) throws(CommandFailure) -> [String] {
        if overwrite != .always, let endpoint = endpoints.first(where: { uploadOptions($0).overwriting == .byServer }) {
            throw CommandFailure(
                .usage,
                "--overwrite \(overwrite.rawValue) does not apply to uploads: \(endpoint.location) decides whether to replace existing files. Omit the option."
            )
        }
        guard overwrite != .never, overwrite != .rename, let endpoint = endpoints.first(where: { uploadOptions($0).overwriting == .never })
        else { return [] }
        let reason = "\(endpoint.location) stores each file as a new upload and never compares or replaces files"
        if let other = endpoints.first(where: { uploadOptions($0).overwriting != .never }) {
            return ["--overwrite \(overwrite.rawValue) applies only to uploads to \(other.location): \(reason)."]
        }
        guard overwrite == .always else {
            throw CommandFailure(
                .usage, "--overwrite \(overwrite.rawValue) does not apply to uploads: \(reason). Omit the option.")
        }
        return ["--overwrite always has no effect: \(reason)."]
    }

    /// Checks the consequences of a clash of remote names. The two items can have the same name, or only files inside the items.
    ///
    /// - Returns: A warning for the user; nil if only files inside the items can clash.
    /// - Throws: A `CommandFailure` if an endpoint would replace or skip one of the files. If the items themselves clash, also if the first endpoint
    ///   that can perform the session would reject the second item.
    func check(_ clash: RemoteNameClash) throws(CommandFailure) -> String? {
        var options = attemptOptions
        let clashes = NameClashes(at: endpoints) { endpoint throws(TransferError) in
            try transports.validate(options, for: .upload, at: endpoint)
        } clash: {
            transports.nameClash(options, at: $0)
        }
        if let loss = clashes.loss(ofContents: clash.isOfContents) {
            options.overwrite = .rename
            let other = transports.nameClash(options, at: loss.endpoint) == .bothKept ? ", or with --overwrite rename" : ""
            throw CommandFailure(
                .usage,
                "\(clash), and at \(loss.endpoint.location) \(clash.consequence(loss.clash)). Nothing was added. Add them separately, each with a different --to\(other)."
            )
        }
        guard !clash.isOfContents else { return nil }
        guard let fallback = clashes.refusing else { return "\(clash). The server keeps them as separate files with the same name." }
        return "\(clash). If \(fallback.location) receives them, \(NameClash.refused.consequence)."
    }

    /// Returns warnings about `--chunk` and `--parallel` if no endpoint supports them.
    ///
    /// - Parameters:
    ///   - chunk: Whether `--chunk` is given.
    ///   - parallel: Whether `--parallel` is given.
    ///   - isSingleFile: Whether each session has a single file, so that `--parallel` only sets the number of segments.
    func warnings(chunk: Bool, parallel: Bool, ofSingleFile isSingleFile: Bool) -> [String] {
        var warnings: [String] = []
        if chunk, let endpoint = endpoints.first, !endpoints.contains(where: { uploadOptions($0).hasChunks }) {
            warnings.append("--chunk has no effect: \(endpoint.location) receives each file in one request.")
        }
        if parallel, isSingleFile, let endpoint = endpoints.first, !endpoints.contains(where: { uploadOptions($0).hasSegments }) {
            warnings.append("--parallel has no effect on a single file: \(endpoint.location) receives each file in one request.")
        }
        return warnings
    }
}

extension RemoteNameClash {
    /// Finds the first clash of remote names in a list of items; nil if no names clash. A clash of the items themselves takes precedence
    /// over a clash of files inside items. Blocks.
    init?(in items: [TransferItem]) {
        var names = RemoteNames()
        var contents: RemoteNameClash?
        for item in items {
            guard let name = item.destination, let source = item.source else { continue }
            guard let clash = names.add(Data(name.bytes), source.absolute) else { continue }
            contents = contents ?? clash
            guard !clash.isOfContents else { continue }
            self = clash
            return
        }
        guard let contents else { return nil }
        self = contents
    }
}
