import Foundation
import TransferCore

/// Moves a complete part file to its final name: atomically, and only to a name that the overwrite policy allows.
struct PartPlacing: Sendable {
    let client: SFTPClient
    let features: SFTPFeatures
    let place: RemoteFilePaths
    let part: [UInt8]
    let policy: OverwritePolicy
    let source: UploadSource

    private static let maximumNumbers = 1_000

    static func lost(_ name: String, at server: String) -> TransferError {
        TransferError(.resumeLost, .uploadGone, "The part file of \(name) is no longer at \(server). The upload restarts.")
    }

    // MARK: Existing files

    /// Checks before the first byte whether the policy keeps an existing file, so that nothing is sent.
    ///
    /// - Returns: The receipt for the existing file; nil to send the file.
    func receiptIfKept() async throws -> TransferReceipt? {
        guard policy != .rename, let found = try await client.attributesIfThere(place.final) else { return nil }
        if policy == .never { throw TransferError.remoteFileExists(place.name, at: client.serverName) }
        if found.kind == .folder, policy != .skip { throw isFolder }
        let size = policy == .always || found.kind == .folder ? nil : try found.checkedSize(of: place.name, at: client.serverName)
        let isKept =
            switch policy {
            case .skip: true
            case .different: source.growth == nil && size == source.size && age(of: found) == 0
            case .newer: source.growth == nil && (age(of: found) ?? 1) <= 0
            default: false
            }
        guard isKept else { return nil }
        // The existing file may have any size, because it is kept unchanged.
        return receipt(bytes: source.growth == nil ? source.size : size ?? 0, place.final)
    }

    /// Returns by how many seconds the source is newer than the file on the server, whose time has no fractions; nil if this is unknown.
    private func age(of found: FileAttributes) -> Int64? {
        let time = source.identity.modificationTime
        let seconds = time / 1_000_000_000 - (time % 1_000_000_000 < 0 ? 1 : 0)
        return found.modificationTime.map { seconds - Int64($0) }
    }

    // MARK: The name

    /// Renames the part file.
    ///
    /// - Parameter journal: Called with each name before the part file is renamed to it.
    func place(size: Int64, journal: ([UInt8]) async throws -> Void) async throws -> TransferReceipt {
        switch policy {
        case .always, .different, .newer:
            try await journal(place.final)
            return receipt(bytes: size, place.final, warnings: try await replace())
        case .never, .skip:
            try await journal(place.final)
            if try await renameIfFree(to: place.final) { return receipt(bytes: size, place.final) }
            if policy == .never { throw TransferError.remoteFileExists(place.name, at: client.serverName) }
            try await client.perform(.remove(part))
            return receipt(bytes: size, place.final)
        case .rename:
            for number in 0..<Self.maximumNumbers {
                let candidate = place.numbered(number)
                // Each name is checked first, because some servers replace a file when they rename.
                guard try await client.attributesIfThere(candidate) == nil else { continue }
                try await journal(candidate)
                if try await renameIfFree(to: candidate) { return receipt(bytes: size, candidate) }
            }
            throw TransferError.remoteFileExists(place.name, at: client.serverName)
        }
    }

    /// - Returns: Whether the name was free.
    private func renameIfFree(to final: [UInt8]) async throws -> Bool {
        guard try await client.attributesIfThere(final) == nil else { return false }
        do {
            // Fails if a file with that name exists (draft-ietf-secsh-filexfer-02, section 6.5).
            try await client.perform(.rename(part, to: final))
            return true
        } catch let failure as StatusFailure {
            if failure.status.code.meansMissing { throw Self.lost(place.name, at: client.serverName) }
            if try await client.attributesIfThere(final) != nil { return false }
            throw failure
        }
    }

    /// - Returns: The warnings for the receipt.
    private func replace() async throws -> [String] {
        if features.offers(.posixRename) {
            do {
                try await client.perform(.posixRename(part, to: place.final))
            } catch let failure as StatusFailure {
                throw try await explain(failure)
            }
            return []
        }
        // Some servers replace an existing file with this request, others reject the request.
        do {
            try await client.perform(.rename(part, to: place.final))
            return []
        } catch let failure as StatusFailure where !failure.status.code.meansMissing {
            guard let found = try await client.attributesIfThere(place.final), found.kind != .folder else {
                throw try await explain(failure)
            }
        }
        try await client.perform(.remove(place.final))
        try await client.perform(.rename(part, to: place.final))
        return ["\(client.serverName) can't replace a file atomically, so \(place.name) was missing for a moment."]
    }

    private func explain(_ failure: StatusFailure) async throws -> any Error {
        if failure.status.code.meansMissing { return Self.lost(place.name, at: client.serverName) }
        if try await client.attributesIfThere(place.final)?.kind == .folder { return isFolder }
        return failure
    }

    var isFolder: TransferError { TransferError.isFolder(place.name, at: client.serverName) }

    // MARK: After a lost response

    /// Checks whether a part file was renamed when the response was lost.
    ///
    /// - Returns: The receipt if it was renamed; nil if the part file is complete and not renamed.
    /// - Throws: A `TransferError` of the class `resumeLost` if neither file exists.
    func finishAfterLostResponse(_ checkpoint: UploadCheckpoint, size: Int64) async throws -> TransferReceipt? {
        if let found = try await client.attributesIfThere(part) {
            guard found.size == UInt64(exactly: size) else { throw Self.lost(place.name, at: client.serverName) }
            return nil
        }
        let final = [UInt8](checkpoint.final)
        guard let found = try await client.attributesIfThere(final), found.size == UInt64(exactly: size) else {
            throw Self.lost(place.name, at: client.serverName)
        }
        return receipt(bytes: size, final)
    }

    func receipt(bytes: Int64, _ path: [UInt8], warnings: [String] = []) -> TransferReceipt {
        TransferReceipt(bytes: bytes, remoteURL: place.url(of: path), warnings: warnings)
    }
}
