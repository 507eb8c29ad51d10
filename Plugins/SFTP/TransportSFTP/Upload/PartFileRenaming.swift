import Foundation
import TransferCore

/// Renames a complete part file to a name that the overwrite policy allows. The rename is atomic if the server supports atomic renames.
struct PartFileRenaming: Sendable {
    let client: SFTPClient
    let features: SFTPFeatures
    let paths: RemoteFilePaths
    let partPath: [UInt8]
    let policy: OverwritePolicy
    let source: UploadSource

    private static let maximumNumbers = 1_000

    /// Returns the error for a part file that is missing or incomplete.
    static func lost(_ name: String, at server: String) -> TransferError {
        TransferError(.resumeLost, .uploadGone, "The part file of \(name) at \(server) is missing or incomplete. The upload restarts.")
    }

    // MARK: Existing files

    /// Returns nil if no file has the final name, or if the policy is `rename`, which chooses a free name later.
    func existingFile() async throws -> FileAttributes? {
        policy == .rename ? nil : try await client.attributesIfPresent(paths.final)
    }

    /// Checks whether the policy keeps an existing file. Call this method before sending content.
    ///
    /// - Returns: The receipt for the existing file; nil to send the file.
    /// - Throws: A `TransferError` if the policy is `never`, if the file is a folder and the policy is not `skip`, or if the server reports an
    ///   implausible size.
    func receipt(keeping found: FileAttributes) throws -> TransferReceipt? {
        if policy == .never { throw TransferError.remoteFileExists(paths.name, at: client.serverName) }
        if found.kind == .folder, policy != .skip { throw folderExists }
        let size = policy == .always || found.kind == .folder ? nil : try found.checkedSize(of: paths.name, at: client.serverName)
        let isKept =
            switch policy {
            case .skip: true
            case .different: source.growth == nil && size == source.size && secondsNewer(than: found) == 0
            case .newer: source.growth == nil && (secondsNewer(than: found) ?? 1) <= 0
            default: false
            }
        guard isKept else { return nil }
        // A growing source has no valid size yet.
        return receipt(bytes: source.growth == nil ? source.size : size ?? 0, paths.final)
    }

    /// Returns by how many seconds the source is newer; negative if it is older, nil if the server does not report the time.
    private func secondsNewer(than found: FileAttributes) -> Int64? {
        found.modificationTime.map { source.identity.modificationSeconds - Int64($0) }
    }

    // MARK: The name

    /// Renames the part file. If the policy is `skip` and a file with the final name exists, removes the part file instead.
    ///
    /// - Parameters:
    ///   - size: The size of the part file in bytes, for the receipt.
    ///   - journal: Called with each name before the attempt to use it.
    /// - Throws: A `TransferError`, a ``StatusFailure``, `CancellationError`, or the error of `journal`.
    func place(size: Int64, journal: ([UInt8]) async throws -> Void) async throws -> TransferReceipt {
        switch policy {
        case .always, .different, .newer:
            try await journal(paths.final)
            return receipt(bytes: size, paths.final, warnings: try await replace())
        case .never, .skip:
            try await journal(paths.final)
            if try await renameIfFree(to: paths.final) { return receipt(bytes: size, paths.final) }
            if policy == .never { throw TransferError.remoteFileExists(paths.name, at: client.serverName) }
            try await client.perform(.remove(partPath))
            return receipt(bytes: size, paths.final)
        case .rename:
            for number in 0..<Self.maximumNumbers {
                let candidate = paths.numbered(number)
                // On some servers, a rename replaces an existing file.
                guard try await client.attributesIfPresent(candidate) == nil else { continue }
                try await journal(candidate)
                if try await renameIfFree(to: candidate) { return receipt(bytes: size, candidate) }
            }
            throw TransferError.remoteFileExists(paths.name, at: client.serverName)
        }
    }

    /// - Returns: Whether the name was free.
    private func renameIfFree(to final: [UInt8]) async throws -> Bool {
        guard try await client.attributesIfPresent(final) == nil else { return false }
        do {
            // According to the draft, this fails if a file with that name exists (draft-ietf-secsh-filexfer-02, section 6.5).
            try await client.perform(.rename(partPath, to: final))
            return true
        } catch let failure as StatusFailure {
            if failure.status.code.meansMissing { throw Self.lost(paths.name, at: client.serverName) }
            if try await client.attributesIfPresent(final) != nil { return false }
            throw failure
        }
    }

    /// - Returns: The warnings for the receipt.
    private func replace() async throws -> [String] {
        if features.offers(.posixRename) {
            do {
                try await client.perform(.posixRename(partPath, to: paths.final))
            } catch let failure as StatusFailure {
                throw try await explain(failure)
            }
            return []
        }
        // Some servers replace an existing file, and others reject this request.
        do {
            try await client.perform(.rename(partPath, to: paths.final))
            return []
        } catch let failure as StatusFailure where !failure.status.code.meansMissing {
            guard failure.status.code.mayMeanExisting,
                let found = try await client.attributesIfPresent(paths.final), found.kind != .folder
            else {
                throw try await explain(failure)
            }
        }
        try await client.perform(.remove(paths.final))
        try await client.perform(.rename(partPath, to: paths.final))
        return ["\(client.serverName) can't replace a file atomically, so \(paths.name) was missing for a moment."]
    }

    private func explain(_ failure: StatusFailure) async throws -> any Error {
        if failure.status.code.meansMissing { return Self.lost(paths.name, at: client.serverName) }
        if try await client.attributesIfPresent(paths.final)?.kind == .folder { return folderExists }
        return failure
    }

    var folderExists: TransferError { TransferError.remoteFolderExists(paths.name, at: client.serverName) }

    // MARK: After a lost response

    /// Checks whether the part file was renamed although the response to the rename was lost.
    ///
    /// - Returns: The receipt if the part file was renamed; nil if the part file is complete, but not renamed.
    /// - Throws: A `TransferError` of the class `resumeLost` if neither name has the complete new file.
    func finishAfterLostResponse(_ checkpoint: UploadCheckpoint, size: Int64) async throws -> TransferReceipt? {
        if let found = try await client.attributesIfPresent(partPath) {
            guard found.size == UInt64(exactly: size) else { throw Self.lost(paths.name, at: client.serverName) }
            return nil
        }
        let final = [UInt8](checkpoint.final)
        // A file that existed before the upload can have the same size.
        guard let found = try await client.attributesIfPresent(final), found.size == UInt64(exactly: size),
            checkpoint.existing != FileVersion(found)
        else {
            throw Self.lost(paths.name, at: client.serverName)
        }
        return receipt(bytes: size, final)
    }

    func receipt(bytes: Int64, _ path: [UInt8], warnings: [String] = []) -> TransferReceipt {
        TransferReceipt(bytes: bytes, remoteURL: paths.url(of: path), warnings: warnings)
    }
}

extension SourceIdentity {
    /// The modification time in seconds since 1970, rounded down like the times on a server.
    var modificationSeconds: Int64 { modificationTime / 1_000_000_000 - (modificationTime % 1_000_000_000 < 0 ? 1 : 0) }
}
