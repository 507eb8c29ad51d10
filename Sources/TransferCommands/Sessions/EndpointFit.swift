import Foundation
import SystemPackage
import TransferCore
import TransferKit
import TransportHTTP
import TransportSFTP
import TransportTUS

/// Looks at new sessions with the eyes of their account's endpoints: what can't be had there is refused, and what has no effect is told.
struct EndpointFit {
    let endpoints: [Endpoint]
    let options: SessionOptions
    let transports: RegisteredTransports

    private var asked: AttemptOptions {
        AttemptOptions(
            metadata: options.metadata, headers: options.headers, verification: options.verification, chunkSize: options.chunkSize,
            parallel: options.parallel, overwrite: options.overwrite, expectedChecksum: options.expectedChecksum, settings: options.settings
        )
    }

    /// - Throws: If the endpoints can't do what the sessions want, by the queue's own rule.
    func check(for direction: TransferDirection) throws(CommandFailure) {
        let asked = asked
        try check { endpoint throws(TransferError) in try transports.validate(asked, for: direction, at: endpoint) }
    }

    /// - Throws: If none of the endpoints can list a folder that is to be received.
    func check(folder: FilePath) throws(CommandFailure) {
        try check { endpoint throws(TransferError) in
            guard !transports.listsFolders(endpoint.transport) else { return }
            throw TransferError(
                .unsupported, .unsupported,
                "The transport \"\(endpoint.transport)\" lists no folders, so \(folder)/ can't be received from \(endpoint.location); "
                    + "name the files in it.")
        }
    }

    private func check(_ validate: (Endpoint) throws(TransferError) -> Void) throws(CommandFailure) {
        do throws(TransferError) { try endpoints.check(by: validate) } catch { throw CommandFailure(.usage, error.message) }
    }

    /// A tus server makes a new upload of each file: none is refused or replaced for its name, and none can be compared with what is there.
    ///
    /// - Returns: What a person is to know, where a server does not do what the policy says.
    /// - Throws: If there is an endpoint that can't be asked not to replace a file, or none that can compare it with what is there.
    func check(_ overwrite: OverwritePolicy) throws(CommandFailure) -> [String] {
        if overwrite != .always, let endpoint = endpoints.first(where: { $0.transport == .http }) {
            throw CommandFailure(
                .usage,
                "--overwrite is for downloads and SFTP uploads: \(endpoint.location) decides itself what happens to a file that is there already."
            )
        }
        guard overwrite != .never, overwrite != .rename, let endpoint = endpoints.first(where: { $0.transport == .tus }) else { return [] }
        let reason = "\(endpoint.location) keeps each file as a new upload, and never compares or replaces one"
        guard endpoints.allSatisfy({ $0.transport == .tus }) else {
            return ["--overwrite \(overwrite.rawValue) holds only where files go by SFTP: \(reason)."]
        }
        guard overwrite == .always else {
            throw CommandFailure(
                .usage, "--overwrite \(overwrite.rawValue) is for downloads and SFTP uploads: \(reason). Leave the option out.")
        }
        return ["--overwrite always has no effect: \(reason)."]
    }

    /// - Returns: What a person should know of files that get one name.
    /// - Throws: If one of them would be lost, by the queue's own rule.
    func check(_ clash: RemoteNameClash) throws(CommandFailure) -> String {
        var asked = asked
        let clashes = NameClashes(at: endpoints) { endpoint throws(TransferError) in
            try transports.validate(asked, for: .upload, at: endpoint)
        } clash: {
            transports.nameClash(asked, at: $0)
        }
        if let loss = clashes.loss {
            asked.overwrite = .rename
            let other = transports.nameClash(asked, at: loss.endpoint) == .keptApart ? ", or with --overwrite rename" : ""
            throw CommandFailure(
                .usage,
                "\(clash), and at \(loss.endpoint.location) \(loss.clash.consequence). Nothing was added; add them with another --to each\(other)."
            )
        }
        guard let fallback = clashes.refusing else { return "\(clash); the server keeps them as several files of one name." }
        return "\(clash); should they have to go to \(fallback.location), \(NameClash.refused.consequence)."
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

extension RemoteNameClash {
    /// The first one in a list. Blocks.
    init?(in items: [TransferItem]) {
        var names = RemoteNames()
        for item in items {
            guard let name = item.destination, let source = item.source else { continue }
            guard let clash = names.add(Data(name.bytes), source.absolute) else { continue }
            self = clash
            return
        }
        return nil
    }
}
