import Foundation
import TransferCore

/// The content at the other end of a ``MemoryTransport``.
struct MemoryStore: Sendable {
    struct Upload: Sendable {
        let address: String
        let path: RemotePath
        var content = Data()
        var isComplete = false
    }

    /// A file for downloads.
    struct RemoteFile: Sendable {
        var content: Data
        /// Identifies the version of the content, like an entity tag (RFC 9110, section 8.8.3).
        var version: String
        var modificationTime: Int64?
        var reportsSize = true

        /// The size in bytes, if the other end reports it.
        var size: Int64? { reportsSize ? Int64(content.count) : nil }
    }

    private var files: [String: RemoteFile] = [:]
    /// Folders that may be empty.
    var folders: Set<String> = []
    /// The targets of symbolic links, by the name of the link.
    var links: [String: String] = [:]
    private var versions = 0
    private(set) var uploads: [String: Upload] = [:]
    /// The IDs of all uploads in the order of their creation.
    private var order: [String] = []
    /// The IDs of the uploads by remote name, in the order of their creation.
    private var idsByPath: [String: [String]] = [:]

    mutating func create(at address: String, _ path: RemotePath) -> String {
        let id = "upload-\(order.count + 1)"
        order.append(id)
        idsByPath[path.description, default: []].append(id)
        uploads[id] = Upload(address: address, path: path)
        return id
    }

    mutating func append(_ data: Data, to id: String) {
        uploads[id]?.content.append(data)
    }

    mutating func complete(_ id: String) {
        uploads[id]?.isComplete = true
    }

    /// Removes an upload unless the upload is complete, because complete content belongs to the receiver.
    mutating func discard(_ id: String) {
        if uploads[id]?.isComplete == false { uploads[id] = nil }
    }

    mutating func provide(_ content: Data, as path: String, modificationTime: Int64?, reportsSize: Bool) {
        versions += 1
        files[path] = RemoteFile(
            content: content, version: "version-\(versions)", modificationTime: modificationTime, reportsSize: reportsSize)
    }

    /// Gives a file a new version with the same content.
    mutating func touch(_ path: String) {
        versions += 1
        files[path]?.version = "version-\(versions)"
    }

    func remoteFile(_ path: String) -> RemoteFile? {
        if let file = files[links[path] ?? path] { return file }
        return latest(path, at: nil, where: \.isComplete).map { RemoteFile(content: $0.content, version: "upload") }
    }

    /// Returns the entries of a folder for downloads, sorted by name; nil if there is no such folder.
    func entries(of folder: String, resolvesLinks: Bool) -> [RemoteEntry]? {
        var kinds: [String: RemoteEntry.Kind] = [:]
        let uploaded = completePaths.map(\.description)
        // The name of the endpoint's folder is an empty string.
        let prefix = folder.isEmpty ? "" : folder + "/"
        for path in Array(files.keys) + uploaded + folders + links.keys where path.hasPrefix(prefix) {
            let rest = path.dropFirst(prefix.count)
            let name = String(rest.prefix { $0 != "/" })
            if name.utf8.count < rest.utf8.count || folders.contains(path) {
                kinds[name] = .folder
            } else if let target = links[path] {
                kinds[name] = resolvesLinks ? remoteFile(target).map { .file(size: $0.size) } ?? .symbolicLink : .symbolicLink
            } else {
                kinds[name] = .file(size: remoteFile(path)?.size)
            }
        }
        guard !kinds.isEmpty || folder.isEmpty || folders.contains(folder) else { return nil }
        return kinds.sorted { $0.key < $1.key }.map { RemoteEntry(name: Array($0.key.utf8), kind: $0.value) }
    }

    func size(of id: String) -> Int64? {
        uploads[id].map { Int64($0.content.count) }
    }

    func latest(_ path: String, at address: String?, where fits: (Upload) -> Bool = { _ in true }) -> Upload? {
        for id in (idsByPath[path] ?? []).reversed() {
            guard let upload = uploads[id], address == nil || upload.address == address else { continue }
            if fits(upload) { return upload }
        }
        return nil
    }

    var completePaths: [RemotePath] {
        order.compactMap { uploads[$0] }.filter(\.isComplete).map(\.path)
    }
}
