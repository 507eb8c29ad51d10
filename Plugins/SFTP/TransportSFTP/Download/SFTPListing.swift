import TransferCore

struct SFTPListing {
    /// Several, so that an opened small folder is listed in one round trip.
    private static let requestsInFlight = 4
    /// The maximum number of consecutive responses without names, to prevent an endless listing.
    private static let maximumEmptyResponses = 100

    private let client: SFTPClient
    private let paths: RemoteFilePaths
    private let resolvesLinks: Bool
    private let receive: @Sendable ([RemoteEntry]) async throws -> Void

    init(
        _ attempt: ListingAttempt, _ server: SFTPServer, over connection: PooledConnection,
        receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void
    ) {
        client = connection.client
        paths = RemoteFilePaths(attempt.remotePath, at: server.address)
        resolvesLinks = attempt.resolvesLinks
        self.receive = receive
    }

    /// - Throws: A `TransferError`, `CancellationError`, or the receiver's error.
    func run() async throws {
        let handle = try await open()
        defer { client.close(handle) }
        do {
            try await readAll(of: handle)
        } catch let failure as StatusFailure {
            throw failure.transferError(paths.name, .download, at: client.serverName)
        }
    }

    private func open() async throws -> Handle {
        do {
            return try await client.open(.opendir(paths.final))
        } catch let failure as StatusFailure {
            // Version 3 has no status for an existing file that is not a folder.
            if let found = try? await client.attributes(.stat(paths.final)), let kind = found.kind, kind != .folder {
                throw TransferError(.permanent, .noSuchRemoteFile, "\(paths.name) is a file at \(client.serverName), not a folder.")
            }
            guard failure.status.code.meansMissing else {
                throw failure.transferError(paths.name, .download, at: client.serverName)
            }
            throw TransferError(.permanent, .noSuchRemoteFile, "\(client.serverName) has no folder \(paths.name).")
        }
    }

    private func readAll(of handle: Handle) async throws {
        var pending: [PendingResponse] = []
        defer { for response in pending { response.abandon() } }
        var emptyResponses = 0
        while true {
            while pending.count < Self.requestsInFlight { pending.append(client.begin(.readdir(handle))) }
            switch try await pending.removeFirst().response() {
            case .names(let files):
                emptyResponses = files.isEmpty ? emptyResponses + 1 : 0
                guard emptyResponses <= Self.maximumEmptyResponses else { throw client.unexpectedResponseError }
                for start in stride(from: 0, to: files.count, by: Self.maximumConcurrentRequests) {
                    let entries = try await entries(Array(files[start..<min(start + Self.maximumConcurrentRequests, files.count)]))
                    if !entries.isEmpty { try await receive(entries) }
                }
            case .status(let status) where status.code == .endOfFile: return
            case .status(let status) where status.code != .ok: throw StatusFailure(status)
            default: throw client.unexpectedResponseError
            }
        }
    }

    /// Omits `.` and `..`. Requests missing attributes in parallel, and likewise the attributes of link targets if links are resolved.
    private func entries(_ files: [ListedFile]) async throws -> [RemoteEntry] {
        var files = files.filter { ![Self.dot, Self.dotDot].contains($0.name) }
        try await requestAttributes(of: &files, where: { $0.kind == nil }) { .lstat($0) }
        guard resolvesLinks else { return files.map { Self.entry($0.name, $0.attributes) } }
        var targets = files
        try await requestAttributes(of: &targets, where: { $0.kind == .link }) { .stat($0) }
        return zip(files, targets).map { file, target in
            Self.entry(file.name, file.attributes.kind == .link && target.attributes.kind == .regular ? target.attributes : file.attributes)
        }
    }

    private func requestAttributes(
        of files: inout [ListedFile], where isWanted: (FileAttributes) -> Bool, _ request: ([UInt8]) -> Request
    ) async throws {
        // The receiver rejects names that are not single components.
        let wanted = files.indices.filter { isWanted(files[$0].attributes) && Self.isSingle(files[$0].name) }
        let pending = wanted.map { ($0, client.begin(request(paths.entry(files[$0].name)))) }
        defer { for (_, response) in pending { response.abandon() } }
        for (index, response) in pending {
            do {
                files[index].attributes = try await response.attributes()
            } catch is StatusFailure {
                // For example, the entry was removed, or is a dangling link.
                continue
            }
        }
    }

    private static func entry(_ name: [UInt8], _ attributes: FileAttributes) -> RemoteEntry {
        let kind: RemoteEntry.Kind =
            switch attributes.kind {
            // If an entry of unknown kind is not a file, its download fails.
            case nil, .regular?: .file(size: RemoteVersion(attributes)?.size)
            case .folder?: .folder
            case .link?: .symbolicLink
            case .other?: .other
            }
        return RemoteEntry(name: name, kind: kind)
    }

    private static func isSingle(_ name: [UInt8]) -> Bool {
        !name.isEmpty && !name.contains(0) && !name.contains(UInt8(ascii: "/"))
    }

    /// The maximum number of entries whose attributes are requested in parallel. The receiver gets these entries before the next requests,
    /// so even a slow listing shows activity.
    private static let maximumConcurrentRequests = 100
    private static let dot = [UInt8(ascii: ".")]
    private static let dotDot = [UInt8(ascii: "."), UInt8(ascii: ".")]
}
