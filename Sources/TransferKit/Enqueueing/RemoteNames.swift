package import Foundation
package import SystemPackage
package import TransferCore

/// The remote names of an account's uploads, each with its local source.
package struct RemoteNames {
    /// The source of each name; nil for in-memory data and streams.
    private var sources: [Data: FilePath?] = [:]

    /// Creates an empty collection.
    package init() {}

    /// Adds a name. Adding the same file twice is not a clash. Two folders with the same name are not a clash, because their contents merge. Blocks.
    ///
    /// - Parameter source: The absolute path of the file or folder; nil for in-memory data and streams.
    /// - Returns: The clash if another source has the name; otherwise nil.
    package mutating func add(_ name: Data, _ source: FilePath?) -> RemoteNameClash? {
        // Normalizing paths is slow, so compare the paths as given first. Two sources with the same name usually have the same path.
        guard let other = sources.updateValue(source, forKey: name), source == nil || other != source else { return nil }
        let (first, second) = (other?.lexicallyNormalized(), source?.lexicallyNormalized())
        if let first, let second, first == second || Self.isFolder(first) && Self.isFolder(second) { return nil }
        return RemoteNameClash(name: name, first: first, second: second)
    }

    /// Adds the remote names of drafts, except drafts with an upload URL. Blocks.
    ///
    /// - Returns: The first clash; otherwise nil.
    mutating func add(_ drafts: [ItemDraft], in folders: SourceFolders) -> RemoteNameClash? {
        for draft in drafts where draft.uploadCapability == nil {
            if let clash = add(draft.destination, folders.source(of: draft.kind, [UInt8](draft.source))) { return clash }
        }
        return nil
    }

    private static func isFolder(_ path: FilePath) -> Bool {
        if case .folder? = try? LocalFile(at: path) { true } else { false }
    }
}

/// Two uploaded items with the same remote name.
package struct RemoteNameClash: CustomStringConvertible {
    fileprivate let name: Data
    fileprivate let first: FilePath?
    fileprivate let second: FilePath?

    /// The sources and the remote name, as a clause for messages, without a full stop.
    package var description: String {
        let name = String(decoding: name, as: UTF8.self)
        let sources = [first, second].compactMap { $0.map { "\($0)" } }
        return switch sources.count {
        case 2: "\(sources[0]) and \(sources[1]) have the same remote name, \"\(name)\""
        case 1: "\(sources[0]) and another item have the same remote name, \"\(name)\""
        default: "Two items have the same remote name, \"\(name)\""
        }
    }
}

/// The consequence of a name clash at each endpoint of an account. Omits endpoints that can't perform the session.
package struct NameClashes {
    private let consequences: [(endpoint: Endpoint, clash: NameClash)]

    /// Determines the consequence at each endpoint.
    ///
    /// - Parameters:
    ///   - endpoints: The account's endpoints, in their order.
    ///   - validate: Throws if an endpoint can't perform the session.
    ///   - clash: Returns what happens at an endpoint to files with the same name.
    package init(at endpoints: [Endpoint], validate: (Endpoint) throws(TransferError) -> Void, clash: (Endpoint) -> NameClash) {
        var consequences: [(endpoint: Endpoint, clash: NameClash)] = []
        for endpoint in endpoints {
            do throws(TransferError) { try validate(endpoint) } catch { continue }
            consequences.append((endpoint, clash(endpoint)))
        }
        self.consequences = consequences
    }

    /// The first endpoint at which a name clash is an error; nil if there is no such endpoint.
    ///
    /// A clash is an error at each endpoint that would replace or skip a file. At an endpoint that would reject the second file, a clash is
    /// an error only if that endpoint is the first that can perform the session. A fallback endpoint may never be used, and rejecting the
    /// file loses no data.
    package var loss: (endpoint: Endpoint, clash: NameClash)? {
        consequences.enumerated().first { index, consequence in
            consequence.clash == .replaced || consequence.clash == .skipped || index == 0 && consequence.clash == .refused
        }?.element
    }

    /// The first endpoint that would reject the second file; nil if no endpoint would.
    package var refusing: Endpoint? { consequences.first { $0.clash == .refused }?.endpoint }
}

extension NameClash {
    /// The consequence for the two files, as a clause for messages, without a full stop.
    package var consequence: String {
        switch self {
        case .bothKept: "both would be kept"
        case .refused: "the second one would be refused, because existing files are not replaced"
        case .skipped: "the second one would be skipped, because a file with its name would already exist"
        case .replaced: "one could replace the other"
        }
    }
}

extension SourceFolders {
    /// The local file or folder of a stored source; nil for in-memory data and streams.
    func source(of kind: ItemKind, _ stored: [UInt8]) -> FilePath? {
        kind.isSpooled ? nil : FilePath(bytes: path(kind, stored))
    }
}
