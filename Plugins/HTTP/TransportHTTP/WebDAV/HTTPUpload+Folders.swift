import HTTPSupport
import TransferCore

extension HTTPUpload {
    private var session: String { attempt.origin.session }

    /// The folders that the upload needs. Empty without WebDAV, for a `POST`, and if the item or the session sets the URL.
    private var neededFolders: [String] {
        guard server.options.webDAV, !leavesRecord, server.givenURL == nil else { return [] }
        return FolderCreation.folders(of: url, at: server.address)
    }

    /// Creates the missing folders of the file on a WebDAV server.
    ///
    /// - Returns: The state of the innermost folder.
    /// - Throws: The errors of ``FolderCreation/ensure(_:in:at:)``.
    func createFolders() async throws -> FolderCreation.Outcome {
        try await folders.ensure(neededFolders[...], in: session, at: server)
    }

    /// Creates the folders again if a failed `PUT` may mean that another client removed them.
    ///
    /// - Returns: The state of the innermost folder; nil if the response has another cause.
    func createFoldersAgain(after endpointResponse: EndpointResponse) async throws -> FolderCreation.Outcome? {
        let needed = neededFolders
        // nginx responds with 500 if the folder is missing.
        guard !needed.isEmpty, [404, 409, 500].contains(endpointResponse.status) else { return nil }
        folders.forget(needed, in: session)
        return try await createFolders()
    }

    /// Returns whether a failed `PUT` may succeed after ``createFoldersAgain(after:)``.
    func canStoreNow(_ endpointResponse: EndpointResponse, in folder: FolderCreation.Outcome) -> Bool {
        switch folder {
        case .created: true
        // Another upload may have created the folder after the response.
        case .exists: endpointResponse.status == 404 || endpointResponse.status == 409
        case .refused: false
        }
    }

    /// The error for a failed upload. If the folder of the file could not be created, this is the cause of most failures.
    func failure(_ endpointResponse: EndpointResponse, _ folder: FolderCreation.Outcome) -> TransferError {
        if case .refused(let error) = folder, [400, 404, 405, 409, 410, 500].contains(endpointResponse.status) { return error }
        return endpointResponse.uploadFailure(isGivenURL: server.givenURL != nil)
    }
}
