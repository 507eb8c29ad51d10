import SystemPackage
import TransferCore
import TransportSupport

/// The additional files of a form, from the settings `file.NAME`.
struct FormFiles {
    static let sourcePlaceholder = "{source}"

    private let files: [(field: String, path: FilePath)]

    init(_ options: HTTPOptions, for source: UploadSource, _ names: TransferNames) {
        let sourceValue = [Self.sourcePlaceholder: source.path.string]
        files = options.files.sorted { $0.key < $1.key }.flatMap { field, paths in
            paths.map { (field, FilePath(names.fill($0, percentEncoded: false, with: sourceValue))) }
        }
    }

    /// Opens the files. Each attempt sends all of them again.
    ///
    /// - Throws: A ``TransferError`` that names an unreadable file; or `CancellationError`.
    func open(on disks: DiskThreads) async throws -> [FormBody.File] {
        var opened: [FormBody.File] = []
        for (field, path) in files {
            let threads = disks.threads(forFilesIn: path.removingLastComponent())
            let identity = try await threads.runUnlessCancelled { try SourceIdentity(ofFileAt: path) }
            let source = UploadSource(path: path, identity: identity)
            let reader = try await FileReader.open(source, on: disks.threads(for: source))
            let name = path.lastComponent.map { Array($0.string.utf8) } ?? []
            opened.append(
                FormBody.File(
                    field: field, name: name, mediaType: MediaType.ofFile(named: name), reader: reader,
                    size: identity.size, contributesToProgress: false))
        }
        return opened
    }
}
