import Foundation
import SystemPackage
import TransferCore

/// What an attempt moves, as it is now.
struct MovingFile: Sendable {
    var payload: FileAttempt.Payload
    /// Nil while it is not known.
    var size: Int64?
    /// Of the file that is sent; nil of a download.
    var identity: SourceIdentity?
    /// The stream whose bytes are sent.
    var stream: StreamSpool?
    /// Makes durable what the store has to know before the attempt begins.
    var preparation: Task<Void, any Error>?
}

extension PendingFile {
    /// The name of the file in the spool that a stream goes through.
    var streamName: Data { Data((source.lastComponent?.string ?? "").utf8) }
}

extension FileRunner {
    /// Looks at what is to be moved: compares a file that is sent with what earlier attempts sent of it.
    mutating func moving(at endpoint: Endpoint) async throws -> MovingFile {
        if file.kind == .download { return receiving(from: endpoint) }
        if file.kind == .stream { return try await streaming(to: endpoint) }
        let (path, confinement) = (file.source, file.confinement)
        let identity: SourceIdentity
        do throws(TransferError) {
            identity = try await DiskThread.run { () throws(TransferError) in
                // Many a file system answers stat(2) sooner than open(2), but only that can be kept from following links.
                guard confinement != nil else { return try SourceIdentity(ofFileAt: path) }
                let descriptor = try SourceConfinement.open(path, within: confinement)
                defer { try? descriptor.close() }
                return try SourceIdentity(of: descriptor, path: path)
            }
        } catch {
            guard file.kind == .blob, error.code == .noSuchFile else { throw error }
            throw TransferError(
                .sourceLost, .noSuchFile,
                "The bytes of \(String(decoding: file.destination, as: UTF8.self)) are gone: those from memory are kept until they have arrived, and no longer. Enqueue them anew.",
                cause: error.cause)
        }
        guard identity.size <= FileSize.maximum else { throw FileSize.tooLarge(path) }
        if let stored = checkpoints[endpoint.address] { try await settle(identity, against: stored) }
        let source = UploadSource(path: path, identity: identity, isSpooled: file.kind == .blob, confinement: confinement)
        return MovingFile(payload: .upload(source), size: identity.size, identity: identity)
    }

    /// The stream of an app in this process, from where the other end has it.
    private func streaming(to endpoint: Endpoint) async throws -> MovingFile {
        let name = String(decoding: file.destination, as: UTF8.self)
        guard let stream = context.streams.find(file.streamName) else {
            throw TransferError(
                .sourceLost, .producerGone,
                "The bytes of \(name) were a stream of a process that has ended, or that failed before. Enqueue it anew with another stream."
            )
        }
        let released = stream.released
        guard checkpoints[endpoint.address]?.checkpoint.confirmed ?? 0 >= released else {
            throw TransferError(
                .sourceLost, .producerGone,
                "\(name) can't begin anew: the first \(released) bytes of its stream had arrived, and are not kept. Enqueue it anew.")
        }
        try await stream.begin()
        var size = file.size
        switch stream.growth.extent {
        case .growing: break
        case .complete(let total): size = total
        case .failed(let error): throw error
        }
        let path = file.source
        let identity = try await DiskThread.run(.storage) { () throws(TransferError) in try SourceIdentity(ofFileAt: path) }
        return MovingFile(
            payload: .upload(UploadSource(path: path, identity: identity, growth: stream.growth)), size: size, identity: identity,
            stream: stream)
    }

    /// The store knows of the part that the attempt will make before there is one.
    private mutating func receiving(from endpoint: Endpoint) -> MovingFile {
        let name = file.localName ?? FilePath()
        let folder = FilePath(bytes: file.source.bytes.dropLast(name.bytes.count + 1))
        let root = folder.isEmpty ? "/" : folder
        let part = LocalParts.name(for: name, transferID: transferID, at: endpoint)
        let place = LocalParts.place(for: endpoint)
        let destination = DownloadDestination(root: root, name: name, partName: part, overwrite: context.options.overwrite)
        var moving = MovingFile(payload: .download(destination), size: file.size)
        if checkpoints[place.address] == nil {
            let checkpoint = LocalParts(sources: context.store.sources).checkpoint(of: part, below: root)
            checkpoints[place.address] = StoredCheckpoint(checkpoint: checkpoint, identity: nil)
            let report = Report.Content.file(
                position: file.position, .checkpoint(checkpoint, endpoint: place, generation: file.generation, nil))
            moving.preparation = Task { [context] in try await context.tell(report) }
        }
        return moving
    }

    /// Makes sure that what was sent is the beginning of what the file is now.
    private mutating func settle(_ identity: SourceIdentity, against stored: StoredCheckpoint) async throws {
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
                // By size and time it is the same file, so nobody needs to be asked; but what was sent can't be compared.
                try await startOver(changed("it was replaced by another file"))
                return
            }
            let source = UploadSource(path: file.source, identity: identity, confinement: file.confinement)
            guard await PrefixDigest.make(of: source, confirmed: confirmed) == digest else {
                throw changed("it was replaced by another file with other content")
            }
        }
    }

    private func changed(_ what: String) -> TransferError {
        TransferError(
            .sourceChanged, .sourceChanged,
            "\(file.source) changed after a part of it was sent: \(what). Retry it to send the new content.")
    }
}
