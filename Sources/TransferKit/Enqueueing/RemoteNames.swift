package import Foundation
package import SystemPackage
package import TransferCore

/// The remote names that uploads of one account get, each with its source.
package struct RemoteNames {
    /// Nil for bytes from memory and streams.
    private var sources: [Data: FilePath?] = [:]

    /// No names.
    package init() {}

    /// Adds a name. A file that is named twice is no clash, and neither are two folders, whose contents merge. Blocks.
    ///
    /// - Parameter source: The absolute path of the file or folder; nil for bytes from memory and streams.
    /// - Returns: The clash, if another source has the name.
    package mutating func add(_ name: Data, _ source: FilePath?) -> RemoteNameClash? {
        // Most that have one name are one file; to normalize paths takes long.
        guard let other = sources.updateValue(source, forKey: name), source == nil || other != source else { return nil }
        let (first, second) = (other?.lexicallyNormalized(), source?.lexicallyNormalized())
        if let first, let second, first == second || Self.isFolder(first) && Self.isFolder(second) { return nil }
        return RemoteNameClash(name: name, first: first, second: second)
    }

    /// Adds the names of drafts. Blocks.
    ///
    /// - Returns: The first clash.
    mutating func add(_ drafts: [ItemDraft], in folders: SourceFolders) -> RemoteNameClash? {
        for draft in drafts where draft.uploadPlace == nil {
            if let clash = add(draft.destination, folders.source(of: draft.kind, [UInt8](draft.source))) { return clash }
        }
        return nil
    }

    private static func isFolder(_ path: FilePath) -> Bool {
        if case .folder? = try? LocalFile(at: path) { true } else { false }
    }
}

/// Two items of uploads that have one remote name.
package struct RemoteNameClash: CustomStringConvertible {
    fileprivate let name: Data
    fileprivate let first: FilePath?
    fileprivate let second: FilePath?

    /// Both sources and the name, without a full stop.
    package var description: String {
        let name = String(decoding: name, as: UTF8.self)
        let sources = [first, second].compactMap { $0.map { "\($0)" } }
        return switch sources.count {
        case 2: "Both \(sources[0]) and \(sources[1]) would be \"\(name)\" there"
        case 1: "Both \(sources[0]) and another item would be \"\(name)\" there"
        default: "Two items would be \"\(name)\" there"
        }
    }
}

/// What a name clash leads to at the endpoints of an account that can do what a session asks for.
package struct NameClashes {
    private let fates: [(endpoint: Endpoint, clash: NameClash)]

    /// - Parameters:
    ///   - validate: Asks an endpoint's transport whether it can do what the session asks for.
    ///   - clash: Asks it what happens to files with one name.
    package init(at endpoints: [Endpoint], validate: (Endpoint) throws(TransferError) -> Void, clash: (Endpoint) -> NameClash) {
        var fates: [(endpoint: Endpoint, clash: NameClash)] = []
        for endpoint in endpoints {
            do throws(TransferError) { try validate(endpoint) } catch { continue }
            fates.append((endpoint, clash(endpoint)))
        }
        self.fates = fates
    }

    /// The first endpoint that would lose a file, or the account's first one if that would refuse it. A fallback that refuses a file loses
    /// nothing, and may never be used.
    package var loss: (endpoint: Endpoint, clash: NameClash)? {
        fates.enumerated().first { index, fate in
            fate.clash == .replaced || fate.clash == .leftOut || index == 0 && fate.clash == .refused
        }?.element
    }

    /// The first endpoint that would refuse the second file.
    package var refusing: Endpoint? { fates.first { $0.clash == .refused }?.endpoint }
}

extension NameClash {
    /// What happens, for messages.
    package var consequence: String {
        switch self {
        case .keptApart: "both would be kept"
        case .refused: "the second one would be refused, as nothing is replaced there"
        case .leftOut: "the second one would be left out, as a file with its name is there by then"
        case .replaced: "one could replace the other"
        }
    }
}

extension SourceFolders {
    /// The local file or folder of a stored source; nil for bytes from memory and streams.
    func source(of kind: ItemKind, _ stored: [UInt8]) -> FilePath? {
        kind == .blob || kind == .stream ? nil : FilePath(bytes: path(kind, stored))
    }
}
