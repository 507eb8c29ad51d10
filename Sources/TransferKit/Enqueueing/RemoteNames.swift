package import Foundation
package import SystemPackage
package import TransferCore

/// The remote names of uploaded items, each with the item's local source. Finds clashes between the names.
package struct RemoteNames {
    /// An item with a remote name.
    private struct Owner {
        var source: FilePath?
        /// Whether the item is a folder; nil if the item's path must be inspected.
        var isFolder: Bool?

        /// Whether the item is a folder. Inspects the item's path if necessary. Blocks.
        var isCertainlyFolder: Bool { isFolder ?? source.map(RemoteNames.isFolder) ?? false }

        /// Whether another item's source is the file or folder at a path inside this folder. Both items then send the same content to that path.
        func contains(_ other: Owner?, at path: Data) -> Bool {
            guard let source, let inner = other?.source else { return false }
            return source.pushing(FilePath(bytes: path)).lexicallyNormalized() == inner.lexicallyNormalized()
        }
    }

    private var owners: [NameKey: Owner] = [:]
    /// For each remote folder that contains an item's name, the first such name.
    private var firstNameInside: [NameKey: Data] = [:]

    package init() {}

    /// Adds a name. Adding the same file or folder twice is not a clash. Blocks.
    ///
    /// - Parameters:
    ///   - source: The absolute path of the file or folder; nil for in-memory data and streams.
    ///   - isFolder: Whether the item is a folder; nil to inspect the path when this information is needed.
    /// - Returns: The clash if an item from another source has the same name, or if the name of an item is inside the name of a folder;
    ///   otherwise nil.
    package mutating func add(_ name: Data, _ source: FilePath?, isFolder: Bool? = nil) -> RemoteNameClash? {
        let owner = Owner(source: source, isFolder: isFolder)
        let inner = addFolders(above: name, owner)
        // Normalizing paths is slow, so compare the paths as given first. Two sources with the same remote name usually have the same path.
        guard let other = owners.updateValue(owner, forKey: NameKey(name)), source == nil || other.source != source else { return inner }
        let (first, second) = (other.source?.lexicallyNormalized(), source?.lexicallyNormalized())
        if let first, let second {
            if first == second { return inner }
            if other.isCertainlyFolder, owner.isCertainlyFolder {
                return RemoteNameClash(name: name, first: first, second: second, isOfContents: true)
            }
        }
        return RemoteNameClash(name: name, first: first, second: second)
    }

    /// Records the folders above a new name. Returns the clash with an earlier folder above the name or, for a new folder, with an earlier name
    /// inside the folder; nil if there is no clash.
    private mutating func addFolders(above name: Data, _ owner: Owner) -> RemoteNameClash? {
        var clash: RemoteNameClash?
        for folder in Self.folders(above: name) {
            let rest = name.dropFirst(folder.count + 1)
            if clash == nil, let upper = owners[NameKey(folder)], !upper.contains(owner, at: rest), upper.isCertainlyFolder {
                clash = RemoteNameClash(
                    name: name, first: upper.source?.lexicallyNormalized(), second: owner.source?.lexicallyNormalized(), folder: folder)
            }
            if firstNameInside[NameKey(folder)] == nil { firstNameInside[NameKey(folder)] = name }
        }
        if clash == nil, let inner = firstNameInside[NameKey(name)], owner.isCertainlyFolder,
            !owner.contains(owners[NameKey(inner)], at: inner.dropFirst(name.count + 1))
        {
            clash = RemoteNameClash(
                name: inner, first: owner.source?.lexicallyNormalized(), second: owners[NameKey(inner)]?.source?.lexicallyNormalized(),
                folder: name)
        }
        return clash
    }

    /// The remote folders that contain a name, the innermost first.
    static func folders(above name: Data) -> some Sequence<Data> {
        sequence(state: name) { rest in
            guard let slash = rest.lastIndex(of: UInt8(ascii: "/")) else { return nil }
            rest = rest[..<slash]
            return rest
        }
    }

    /// Adds the remote names of drafts, except drafts with an upload URL. Blocks.
    ///
    /// - Returns: The first rejected clash; nil if no clash is rejected.
    mutating func add(
        _ drafts: [ItemDraft], in folders: SourceFolders, refusing isRefused: (RemoteNameClash) -> Bool
    ) -> RemoteNameClash? {
        for draft in drafts where draft.uploadCapability == nil {
            let source = folders.source(of: draft.kind, [UInt8](draft.source))
            if let clash = add(draft.destination, source, isFolder: draft.kind == .folder), isRefused(clash) { return clash }
        }
        return nil
    }

    private static func isFolder(_ path: FilePath) -> Bool {
        if case .folder? = try? LocalFile(at: path) { true } else { false }
    }
}

/// A remote name as a key of dictionaries and sets. The hash value of `Data` depends only on the first 80 bytes, so names with a longer common
/// prefix would all collide.
struct NameKey: Hashable, Sendable {
    let name: Data

    init(_ name: Data) {
        self.name = name
    }

    func hash(into hasher: inout Hasher) {
        unsafe name.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
    }
}

/// Two uploaded items with the same remote name, or an item whose remote name is inside a folder's remote name.
package struct RemoteNameClash: CustomStringConvertible, Sendable {
    /// The remote name of both items or, if ``folder`` is not nil, of the second item.
    let name: Data
    fileprivate let first: FilePath?
    fileprivate let second: FilePath?
    /// The remote name of the first item, a folder that contains ``name``; nil if both items have the same name.
    private let folder: Data?
    /// Whether only files inside the items can clash, but not the items themselves: the items are folders that merge, or one item is inside
    /// the other.
    package let isOfContents: Bool

    fileprivate init(name: Data, first: FilePath?, second: FilePath?, isOfContents: Bool = false, folder: Data? = nil) {
        self.name = name
        self.first = first
        self.second = second
        self.folder = folder
        self.isOfContents = isOfContents || folder != nil
    }

    /// The sources and the remote name, as a clause for messages, without a full stop.
    package var description: String {
        let name = String(decoding: name, as: UTF8.self)
        if let folder {
            let (upper, lower) = (first.map { "\($0)" } ?? "a folder", second.map { "\($0)" } ?? "An item")
            return "\(lower) has the remote name \"\(name)\", which is inside \"\(String(decoding: folder, as: UTF8.self))\", "
                + "the remote name of \(upper)"
        }
        let sources = [first, second].compactMap { $0.map { "\($0)" } }
        return switch sources.count {
        case 2: "\(sources[0]) and \(sources[1]) have the same remote name, \"\(name)\""
        case 1: "\(sources[0]) and another item have the same remote name, \"\(name)\""
        default: "Two items have the same remote name, \"\(name)\""
        }
    }

    /// What the user should change, as a sentence without its full stop.
    var remedy: String { folder == nil ? "Give each item a different remote name" : "Give one of them another remote name" }

    /// What happens to the files at an endpoint, as a clause for messages, without a full stop.
    package func consequence(_ clash: NameClash) -> String { isOfContents ? clash.consequenceOfContents : clash.consequence }
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
    /// A clash is an error at each endpoint that would replace or skip a file. At an endpoint that would reject the second file, a clash is an error
    /// only if no earlier endpoint can perform the session. Otherwise, the queue perhaps never uses this endpoint, and a rejection loses no data. If
    /// only files inside the items can have the same name, a possible rejection is never an error, because such files usually have different names.
    ///
    /// - Parameter ofContents: Whether only files inside the items can have the same name; see ``RemoteNameClash/isOfContents``.
    package func loss(ofContents: Bool) -> (endpoint: Endpoint, clash: NameClash)? {
        consequences.enumerated().first { index, consequence in
            consequence.clash.losesFiles || index == 0 && consequence.clash == .refused && !ofContents
        }?.element
    }

    /// The first endpoint that would reject the second file; nil if no endpoint would.
    package var refusing: Endpoint? { consequences.first { $0.clash == .refused }?.endpoint }
}

extension NameClash {
    /// Whether one of the files is lost although its transfer counts as completed.
    var losesFiles: Bool { self == .replaced || self == .skipped }

    /// The consequence for the two files, as a clause for messages, without a full stop.
    package var consequence: String {
        switch self {
        case .bothKept: "both would be kept"
        case .refused: "the second one would be rejected, because existing files are not replaced"
        case .skipped: "the second one would be skipped, because a file with its name would already exist"
        case .replaced: "one could replace the other"
        }
    }

    /// The consequence for the files inside two items, as a clause for messages, without a full stop.
    fileprivate var consequenceOfContents: String {
        switch self {
        case .bothKept: "all files would be kept"
        case .refused: "files whose names already exist would be rejected"
        case .skipped: "files whose names already exist would be skipped"
        case .replaced: "a file of one could replace a file of the other"
        }
    }
}

extension SourceFolders {
    /// The local file or folder of a stored source; nil for in-memory data and streams.
    func source(of kind: ItemKind, _ stored: [UInt8]) -> FilePath? {
        kind.isSpooled ? nil : FilePath(bytes: path(kind, stored))
    }
}
