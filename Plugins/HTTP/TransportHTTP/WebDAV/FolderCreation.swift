import HTTPSupport
import Locking
import TransferCore

/// Creates the missing folders of uploads on WebDAV servers with `MKCOL` (RFC 4918, section 9.3).
///
/// Remembers the folders of each session, so it usually requests the creation of each folder only once, even if several files need the folder
/// at the same time.
final class FolderCreation: Sendable {
    /// The state of a folder according to the server.
    enum Outcome: Sendable {
        case created
        /// The name exists, as a folder or a file. WebDAV's response does not show which.
        case exists
        /// The server did not create the folder. The folder may exist nevertheless, so the transport attempts the upload.
        case refused(TransferError)
    }

    private struct Folder: Hashable {
        let session: String
        let url: String
    }

    /// The maximum number of known folders. At the limit, all of them are dropped, and the transport requests each folder again when an upload
    /// needs it.
    private static let maximumCount = 10_000

    private let known = Locked<[Folder: Outcome]>([:])
    private let requests = SingleFlight<Folder, Outcome>()

    /// Returns the folders between the endpoint's folder and a file, from the outermost to the innermost, as URLs whose path ends with a slash.
    static func folders(of url: String, at address: EndpointAddress) -> [String] {
        let root = address.folder.hasSuffix("/") ? address.folder : address.folder + "/"
        guard url.hasPrefix(root) else { return [] }
        let path = url.prefix { $0 != "?" }
        let query = url[path.endIndex...]
        return path.indices.dropFirst(root.count).filter { path[$0] == "/" }.map { String(path[...$0] + query) }
    }

    /// Ensures that folders exist.
    ///
    /// - Parameters:
    ///   - folders: The folders; see ``folders(of:at:)``.
    ///   - session: The ID of the session.
    /// - Returns: The state of the innermost folder.
    /// - Throws: A ``TransferError`` if the server is unavailable or full, or rejects the credentials; or `CancellationError`.
    func ensure(_ folders: ArraySlice<String>, in session: String, at server: HTTPEndpointClient) async throws -> Outcome {
        guard let url = folders.last else { return .exists }
        let folder = Folder(session: session, url: url)
        if let outcome = known.withLock({ $0[folder] }) { return outcome }
        return try await requests.value(for: folder) { [self] in
            // Another call may have found the state of the folder just before this task started.
            if let outcome = known.withLock({ $0[folder] }) { return outcome }
            let outcome = try await create(url, in: folders.dropLast(), session, at: server)
            if let lasting = outcome.lasting { record(lasting, folder) }
            return outcome
        }
    }

    /// Forgets the state of folders after a failed upload, because another client may have removed the folders.
    func forget(_ folders: [String], in session: String) {
        known.withLock { known in
            for url in folders { known[Folder(session: session, url: url)] = nil }
        }
    }

    private func record(_ outcome: Outcome, _ folder: Folder) {
        known.withLock { known in
            if known.count >= Self.maximumCount { known.removeAll() }
            known[folder] = outcome
        }
    }

    /// Requests the creation of one folder. If its parent is missing, ensures that the parent exists, and repeats the request.
    private func create(_ url: String, in parents: ArraySlice<String>, _ session: String, at server: HTTPEndpointClient) async throws
        -> Outcome
    {
        var endpointResponse = try await server.send("MKCOL", to: url, prepare: HTTPEndpointClient.removeConditions)
        // 409: a parent is missing. Some servers respond with 404.
        if endpointResponse.status == 409 || endpointResponse.status == 404, !parents.isEmpty {
            if case .refused(let error) = try await ensure(parents, in: session, at: server) { return .refused(error) }
            endpointResponse = try await server.send("MKCOL", to: url, prepare: HTTPEndpointClient.removeConditions)
        }
        switch endpointResponse.status {
        case 200..<300: return .created
        case 405: return .exists
        case 401, 407, 507: throw endpointResponse.uploadFailure(isGivenURL: false)
        case 404, 409:
            return .refused(
                endpointResponse.error(
                    .permanent, .rejected,
                    "has no folder at the account's address, so no folders can be created there; create that folder, or correct the address"
                ))
        case 403: return .refused(endpointResponse.error(.permanent, .forbidden, "does not allow creating the folder of the file"))
        case 501:
            return .refused(
                endpointResponse.error(.unsupported, .unsupported, "can't create folders by WebDAV; remove the account's setting webDAV"))
        default:
            if let failure = endpointResponse.commonFailure {
                // Some servers respond with 500 if the folder exists.
                if endpointResponse.status == 500 { return .refused(failure) }
                throw failure
            }
            return .refused(
                endpointResponse.error(
                    .permanent, .rejected, "did not create the folder of the file; check whether something else has the folder's name"))
        }
    }
}

extension FolderCreation.Outcome {
    /// The outcome to remember for later files, for which a created folder already exists. Nil after a temporary failure, which may not
    /// recur.
    fileprivate var lasting: Self? {
        switch self {
        case .created, .exists: .exists
        case .refused(let error): error.failureClass == .transient ? nil : self
        }
    }
}
