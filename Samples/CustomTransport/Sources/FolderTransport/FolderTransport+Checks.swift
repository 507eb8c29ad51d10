import Foundation
import SystemPackage
public import TransferCore

/// The checks before a transfer. The queue calls them, and so does `transferq`.
extension FolderTransport {
    /// Checks an endpoint when an account is saved.
    public func validate(_ endpoint: Endpoint) throws(TransferError) { _ = try Self.folder(of: endpoint) }

    /// Checks a session's options when the session is enqueued.
    public func validate(_ options: AttemptOptions, for direction: TransferDirection, at endpoint: Endpoint) throws(TransferError) {
        try Self.validate(options)
    }

    /// Opens the endpoint's folder, for `transferq account check`.
    public func check(_ endpoint: Endpoint, credentials: any CredentialProvider) async throws -> EndpointReport {
        let start = ContinuousClock.now
        _ = try await open(endpoint)
        return EndpointReport(latency: .now - start)
    }

    /// Returns the effect of two files with the same name, which depends on the session's overwrite policy.
    public func nameClash(_ options: AttemptOptions, at endpoint: Endpoint) -> NameClash {
        switch options.overwrite {
        case .rename: .bothKept
        case .never: .refused
        case .skip: .skipped
        case .always, .different, .newer: .replaced
        }
    }

    static func validate(_ options: AttemptOptions) throws(TransferError) {
        guard options.verification != .checksum, options.expectedChecksum == nil else {
            throw TransferError(.unsupported, .unsupported, "The folder transport can't compare checksums. Use size or none.")
        }
    }

    /// The path of an endpoint's folder.
    static func folder(of endpoint: Endpoint) throws(TransferError) -> FilePath {
        let url = try endpoint.validate()
        guard url.scheme == "folder", url.host() == "localhost", url.query() == nil else {
            throw TransferError(
                .permanent, .invalidEndpoint, "\(endpoint.location) is not the URL of a folder. Use folder://localhost/path/to/folder/.")
        }
        if let name = endpoint.settings.keys.min() {
            throw TransferError(.permanent, .invalidEndpoint, "The folder transport has no setting \"\(name)\". Remove it.")
        }
        return FilePath("/" + url.path(percentEncoded: false))
    }
}
