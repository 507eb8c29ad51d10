import SystemPackage
import TransferCore
import TransferKit
import TransportHTTP
import TransportSFTP

/// Looks at new sessions with the eyes of their account's endpoints: what can't be had there is refused, and what has no effect is told.
struct EndpointFit {
    let endpoints: [Endpoint]
    let options: SessionOptions
    let transports: RegisteredTransports

    /// - Throws: If there is no endpoint that could do what the sessions want.
    func check(for direction: TransferDirection) throws(CommandFailure) {
        let asked = AttemptOptions(
            metadata: options.metadata, headers: options.headers, verification: options.verification, chunkSize: options.chunkSize,
            parallel: options.parallel, overwrite: options.overwrite, expectedChecksum: options.expectedChecksum, settings: options.settings
        )
        var first: TransferError?
        for endpoint in endpoints {
            do throws(TransferError) {
                return try transports.validate(asked, for: direction, at: endpoint)
            } catch {
                first = first ?? error
            }
        }
        if let first { throw CommandFailure(.usage, first.message) }
    }

    /// - Throws: If there is an endpoint that can't be asked not to replace a file.
    func check(_ overwrite: OverwritePolicy) throws(CommandFailure) {
        guard overwrite != .always, let endpoint = endpoints.first(where: { $0.transport == .http }) else { return }
        throw CommandFailure(
            .usage,
            "--overwrite is for downloads and SFTP uploads: \(endpoint.location) decides itself what happens to a file that is there already."
        )
    }

    /// - Returns: What a person is to know of files that get one name at a server which keeps them apart.
    /// - Throws: If one file would take the place of another one.
    func check(_ clash: RemoteNameClash) throws(CommandFailure) -> String {
        let endpoint = endpoints.first { endpoint in
            var endpoint = endpoint
            endpoint.settings.merge(options.settings) { $1 }
            return !transports.keepsFilesApart(endpoint)
        }
        guard let endpoint else {
            return "\(clash); the server keeps them as several files of one name."
        }
        throw CommandFailure(
            .usage,
            "\(clash), and at \(endpoint.location) one would take the place of the other. Nothing was added; add them with another --to each."
        )
    }

    /// What a person is to know of options that no endpoint has a use for.
    func warnings(chunk: Bool, parallel: Bool, ofSingleFile isSingleFile: Bool) -> [String] {
        var warnings: [String] = []
        if chunk, let endpoint = endpoints.first, endpoints.allSatisfy({ [.http, .sftp].contains($0.transport) }) {
            warnings.append("--chunk has no effect: \(endpoint.location) takes each file in one piece.")
        }
        if parallel, isSingleFile, let endpoint = endpoints.first, endpoints.allSatisfy({ $0.transport == .http }) {
            warnings.append("--parallel has no effect on a single file: \(endpoint.location) takes each file in one piece.")
        }
        return warnings
    }
}

/// Two local files that would have one name at the other end.
struct RemoteNameClash: CustomStringConvertible {
    let name: RemotePath
    let first: FilePath
    let second: FilePath

    /// The first one in a list. A file that is there twice is none.
    init?(in items: [TransferItem]) {
        var sources: [RemotePath: FilePath] = [:]
        sources.reserveCapacity(items.count)
        for item in items {
            guard let name = item.destination, let source = item.source, let other = sources.updateValue(source, forKey: name) else {
                continue
            }
            let (first, second) = (other.absolute.lexicallyNormalized(), source.absolute.lexicallyNormalized())
            guard first != second else { continue }
            (self.name, self.first, self.second) = (name, first, second)
            return
        }
        return nil
    }

    var description: String { "Both \(first) and \(second) would be \"\(name)\" there" }
}
