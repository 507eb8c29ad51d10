import Foundation
import SystemPackage
import TransferCore

/// The source or destination of an attempt, with its properties before the attempt.
struct AttemptPayload: Sendable {
    var payload: FileAttempt.Payload
    /// The size in bytes; nil while it is unknown.
    var size: Int64?
    /// The identity of the source file; nil for a download or a form.
    var identity: SourceIdentity?
    /// The stream that is the source of an upload; nil for other sources.
    var stream: StreamSpool?
    /// The task that stores the part file's checkpoint, which must be durable before the attempt begins; nil if nothing needs to be stored.
    var preparation: Task<Void, any Error>?
}

extension PendingFile {
    /// The name of a stream's file in the ``Spool``.
    var streamName: Data { Data((source.lastComponent?.string ?? "").utf8) }
}

extension FileRunner {
    /// Inspects the file to transfer. Compares the source of an upload with its identity at the last checkpoint.
    ///
    /// - Throws: ``TransferError`` if the attempt can't begin, for example because the source is missing or has changed; ``QueueError`` if the
    ///   database can't be used.
    mutating func payload(at endpoint: Endpoint) async throws -> AttemptPayload {
        if file.kind == .download { return try await downloadPayload(from: endpoint) }
        if file.kind == .stream { return try await streamPayload(to: endpoint) }
        if file.kind == .form { return try await formPayload(to: endpoint) }
        let (path, confinement) = (file.source, file.confinement)
        let identity: SourceIdentity
        do throws(TransferError) {
            identity = try await context.readLocally(path) { () throws(TransferError) in try Self.identity(of: path, confinement) }
        } catch {
            throw file.kind == .blob ? Self.dataError(error, of: file.destination) : error
        }
        guard identity.size <= FileSize.maximum else { throw FileSize.tooLarge(path) }
        if let stored = checkpoints[endpoint.address] { try await compare(identity, with: stored) }
        let isSpooled = file.kind == .blob
        let source = UploadSource(
            path: path, identity: identity, isSpooled: isSpooled,
            originalPermissions: isSpooled ? Spool.permissionsOfSource(ofCopy: path.lastComponent?.string ?? "") : nil,
            confinement: confinement)
        return AttemptPayload(payload: .upload(source), size: identity.size, identity: identity)
    }

    /// Many file systems respond to stat(2) faster than to open(2), but only open(2) can refuse to follow links.
    private static func identity(of path: FilePath, _ confinement: SourceConfinement?) throws(TransferError) -> SourceIdentity {
        guard confinement != nil else { return try SourceIdentity(ofFileAt: path) }
        let descriptor = try SourceConfinement.open(path, within: confinement)
        defer { try? descriptor.close() }
        return try SourceIdentity(of: descriptor, path: path)
    }

    /// The error for in-memory data whose file in the spool can't be inspected.
    private static func dataError(_ error: TransferError, of name: [UInt8]) -> TransferError {
        guard error.code == .noSuchFile else { return error }
        return TransferError(
            .sourceLost, .noSuchFile,
            "The data of \(String(decoding: name, as: UTF8.self)) no longer exists: the queue keeps data from memory and copies only "
                + "until the item is completed. Enqueue the item again.",
            cause: error.cause)
    }

    /// The payload of a form, with the current identities of its files. No checkpoint refers to a form, so the files may have changed since
    /// an earlier attempt.
    private func formPayload(to endpoint: Endpoint) async throws -> AttemptPayload {
        try endpoint.checkForms(AttemptOptions(context.options), with: context.transports[endpoint.transport])
        let content = try await context.store.form(of: context.key, position: file.position)
        let (spooled, name, sources, hasPolicy) = (file.source, file.destination, context.store.sources, file.confinement != nil)
        let first = content.parts.lazy.compactMap { $0.file?.localPath(sources) }.first
        let parts = try await context.readLocally(first ?? spooled) { () throws(TransferError) in
            try content.parts.map { part throws(TransferError) -> UploadForm.Part in
                guard let file = part.file else { return .field(name: part.field, value: part.text ?? "") }
                guard let path = file.localPath(sources) else {
                    let identity: SourceIdentity
                    do throws(TransferError) {
                        identity = try SourceIdentity(ofFileAt: spooled)
                    } catch {
                        throw Self.dataError(error, of: name)
                    }
                    let source = UploadSource(path: spooled, identity: identity, isSpooled: true)
                    let end = file.offset.addingSaturated(file.size)
                    guard (0...end).contains(file.offset), end <= identity.size else {
                        throw TransferError(.permanent, .internalFailure, "The data of \(file.name) is incomplete. Enqueue the form again.")
                    }
                    return .file(
                        UploadForm.File(
                            field: part.field, name: file.name, mediaType: file.mediaType, source: source, offset: file.offset,
                            length: file.size))
                }
                let confinement = hasPolicy ? SourceConfinement(root: sources.withoutLinks(path), followsFile: false) : nil
                let source = UploadSource(path: path, identity: try Self.identity(of: path, confinement), confinement: confinement)
                return .file(UploadForm.File(field: part.field, name: file.name, mediaType: file.mediaType, source: source))
            }
        }
        let form = UploadForm(parts: parts)
        guard form.size <= FileSize.maximum else { throw FileSize.tooLarge(FilePath(form.files.first?.name ?? "")) }
        return AttemptPayload(payload: .form(form), size: form.size)
    }

    /// The payload of a stream that an app in this process produces. Throws if the stream has failed, if this process does not produce it, or if
    /// the queue no longer has all bytes that the endpoint has not confirmed.
    private func streamPayload(to endpoint: Endpoint) async throws -> AttemptPayload {
        let name = String(decoding: file.destination, as: UTF8.self)
        guard let stream = context.streams.find(file.streamName) else {
            throw TransferError(
                .sourceLost, .producerGone,
                "The stream with the data of \(name) failed, or its process has ended. Enqueue \(name) again with another stream."
            )
        }
        let released = stream.released
        guard checkpoints[endpoint.address]?.checkpoint.confirmed ?? 0 >= released else {
            throw TransferError(
                .sourceLost, .producerGone,
                "Cannot restart \(name): the first \(released) bytes of its stream had arrived, so the queue no longer has these bytes. "
                    + "Enqueue \(name) again with another stream.")
        }
        try await stream.start()
        var size = file.size
        switch stream.growth.extent {
        case .growing: break
        case .complete(let total): size = total
        case .failed(let error): throw error
        }
        let path = file.source
        let identity = try await BlockingIO.run(.storage) { () throws(TransferError) in try SourceIdentity(ofFileAt: path) }
        return AttemptPayload(
            payload: .upload(UploadSource(path: path, identity: identity, growth: stream.growth)), size: size, identity: identity,
            stream: stream)
    }

    /// The destination of a download. If the part file is new, its checkpoint must be stored before the part file exists; see
    /// ``AttemptPayload/preparation``. If another queue ran the session before, uses that queue's part file only if the part file is complete.
    /// Otherwise, removes the part file, and the file restarts.
    private mutating func downloadPayload(from endpoint: Endpoint) async throws -> AttemptPayload {
        let name = file.localName ?? FilePath()
        let folder = FilePath(bytes: file.source.bytes.dropLast(name.bytes.count + 1))
        let root = folder.isEmpty ? "/" : folder
        let partFileEndpoint = Endpoint.localPartFile(of: endpoint)
        var partFileName = LocalPartFiles.name(for: name, transferID: partID, at: endpoint)
        let partFiles = LocalPartFiles(sources: context.store.sources)
        if context.options.partEpoch != nil, let checkpoint = checkpoints[partFileEndpoint.address]?.checkpoint,
            let earlier = partFiles.name(in: checkpoint), earlier != partFileName
        {
            if await partFiles.isComplete(checkpoint) {
                partFileName = earlier
            } else if try await partFiles.seize(checkpoint, as: partFileName) {
                checkpoints[partFileEndpoint.address] = nil
            } else {
                try await restart(
                    TransferError(
                        .resumeLost, .uploadGone,
                        "The download of \(name) restarts, because another queue may still write into its part file."))
                partFileName = LocalPartFiles.name(for: name, transferID: partID, at: endpoint)
            }
        }
        let destination = DownloadDestination(root: root, name: name, partName: partFileName, overwrite: context.options.overwrite)
        var result = AttemptPayload(payload: .download(destination), size: file.size)
        if checkpoints[partFileEndpoint.address] == nil {
            let checkpoint = partFiles.checkpoint(of: partFileName, below: root)
            checkpoints[partFileEndpoint.address] = StoredCheckpoint(checkpoint: checkpoint, identity: nil)
            let report = RunEvent.Content.file(
                position: file.position, .checkpoint(checkpoint, endpoint: partFileEndpoint, generation: file.generation, nil))
            result.preparation = Task { [context] in try await context.send(report) }
        }
        return result
    }

    /// Throws if the file changed after earlier attempts sent some of its content. Restarts the file if another file replaced it, and the
    /// contents of the two files can't be compared.
    private mutating func compare(_ identity: SourceIdentity, with stored: StoredCheckpoint) async throws {
        guard let earlier = stored.identity else { return }
        switch identity.difference(from: earlier) {
        case nil:
            return
        case .content(let change):
            throw changed(change)
        case .fileReplaced:
            let confirmed = stored.checkpoint.confirmed
            guard confirmed > 0 else { return }
            guard let digest = earlier.prefixDigest else {
                // Without a digest, the bytes that earlier attempts sent can't be compared. Restart the file without asking the user,
                // because the size and the modification time are the same.
                try await restart(changed("another file replaced it"))
                return
            }
            let source = UploadSource(path: file.source, identity: identity, confinement: file.confinement)
            guard await PrefixDigest.make(of: source, confirmed: confirmed, for: context) == digest else {
                throw changed("another file with different content replaced it")
            }
        }
    }

    private func changed(_ what: String) -> TransferError {
        TransferError(
            .sourceChanged, .sourceChanged,
            "\(file.source) changed after part of it was sent: \(what). Retry the session to send the new content.")
    }
}
