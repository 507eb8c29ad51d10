import TransferCore
import TransportSupport

/// The part that an upload is written to.
extension SFTPUpload {
    /// Below this, the space at the server is not asked for: the content itself is sooner refused.
    private static let spaceThreshold: Int64 = 1 << 20

    /// Opens the part that a checkpoint vouches for, or makes a new one.
    func openPart(_ checkpoint: UploadCheckpoint, _ confirmed: Int64, _ placing: PartPlacing) async throws -> Handle {
        guard confirmed == 0 else { return try await reopenPart(checkpoint, confirmed) }
        do {
            return try await makePart()
        } catch let failure as StatusFailure where failure.status.code == .failure && isNamed {
            guard try await client.attributesIfThere(part)?.kind == .folder else { throw failure }
            throw placing.isFolder
        } catch let failure as StatusFailure where failure.status.code.meansMissing && !place.parents.isEmpty {
            // Whether they could be made is seen by the part.
            let answers = place.parents.map { client.begin(.mkdir($0)) }
            for answer in answers { _ = try await answer.answer() }
            return try await makePart()
        }
    }

    private func makePart() async throws -> Handle {
        // Where it will be read back, whether it may be is known before the first byte.
        let isReadBack = options.verification == .checksum ? try await connection.checksums.algorithm() == nil : false
        let mode: OpenMode = isReadBack ? [.read, .write, .create] : [.write, .create]
        if isNamed { return try await client.open(.open(part, mode.union(.truncate))) }
        // Whatever has its name is of an earlier attempt, or was put there for us to write through.
        let removal = client.begin(.remove(part))
        let opening = client.begin(.open(part, mode.union(.exclusive)))
        do {
            _ = try await removal.answer()
        } catch {
            opening.abandonOpening()
            throw error
        }
        do {
            return try await opening.handle()
        } catch let failure as StatusFailure where isReadBack && failure.status.code == .permissionDenied {
            client.close(try await client.open(.open(part, [.write, .create, .exclusive])))
            try await client.perform(.remove(part))
            throw ContentComparison.impossible(place.name, at: client.serverName, failure)
        }
    }

    private func reopenPart(_ checkpoint: UploadCheckpoint, _ confirmed: Int64) async throws -> Handle {
        let handle: Handle
        do {
            handle = try await openForWriting()
        } catch let failure as StatusFailure where failure.status.code.meansMissing {
            throw PartPlacing.lost(place.name, at: client.serverName)
        }
        // Of ranges, up to where one has anything.
        let needed = checkpoint.ranges.map { $0.reduce(0) { $1.confirmed > $1.start ? $1.confirmed : $0 } } ?? confirmed
        do {
            guard let size = try await client.attributes(.fstat(handle)).size, size >= UInt64(needed) else {
                throw PartPlacing.lost(place.name, at: client.serverName)
            }
            if confirmed == file.source.size { reporter.reportWaiting() }
            // What is behind was never vouched for.
            if size > UInt64(needed) { try await client.perform(.fsetstat(handle, .size(needed))) }
        } catch {
            client.close(handle)
            throw error
        }
        return handle
    }

    private func openForWriting() async throws -> Handle {
        do {
            return try await client.open(.open(part, [.write]))
        } catch let failure as StatusFailure where failure.status.code == .permissionDenied && settings.keepsModes {
            // It has got the permissions of a file that nobody may write.
            try await client.perform(.setstat(part, .permissions(0o600)))
            return try await client.open(.open(part, [.write]))
        }
    }

    /// Compares the newest of what a checkpoint vouches for with the source, where the server can't sync: it may have lost some of it with its power,
    /// and have as many bytes all the same. What there was of a stream is no longer here to be compared.
    ///
    /// - Returns: Warnings.
    /// - Throws: A `TransferError` of the class `resumeLost` if the server has something else.
    func checkUnsynced(_ checkpoint: UploadCheckpoint, _ confirmed: Int64) async throws -> [String] {
        guard confirmed > 0, settings.syncs, !features.offers(.fsync), file.source.growth == nil else { return [] }
        let blocks = RecentBlocks(checkpoint.ranges.map { $0.map { $0.start..<$0.confirmed } } ?? [0..<confirmed])
        let comparison = ContentComparison(connection: connection, features: features, threads: threads, reporter: reporter)
        do {
            let local = LocalContent(file, size: file.source.size)
            guard try await comparison.isSame(blocks, part, place.name, as: local) else {
                throw PartPlacing.lost(place.name, at: client.serverName)
            }
            return []
        } catch let error as TransferError where error.failureClass == .unsupported {
            return [
                "\(client.serverName) can't sync, nor lets \(place.name) be read back, so that what it had from before an interruption was not compared."
            ]
        }
    }

    // MARK: Space

    /// - Parameter bytes: How many are yet to be sent.
    func requireSpace(at handle: Handle, for bytes: Int64) async throws {
        guard bytes >= Self.spaceThreshold, let space = try await client.space(at: handle, part), space.available < UInt64(bytes) else {
            return
        }
        // What an earlier attempt sent is kept for when there is room again.
        if known == nil || known?.confirmed == 0 { try? await client.perform(.remove(part)) }
        throw TransferError(
            .remoteFull, .remoteFull,
            "\(client.serverName) has \(space.available) bytes free where \(place.name) goes, which needs \(bytes) more.")
    }

    /// A failure without a reason may be a full disk (OpenSSH has no status for it).
    func explain(_ failure: StatusFailure, at handle: Handle) async throws -> StatusFailure {
        var failure = failure
        if let space = try await client.space(at: handle, part), space.available < UInt64(features.writeSize) {
            failure.status.code = .noSpace
        }
        return failure
    }
}
