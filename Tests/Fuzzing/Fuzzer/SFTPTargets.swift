import Foundation
import TransferCore

@testable import TransportSFTP

/// Targets for the messages of SFTP servers, and for the stored state of SFTP transfers.
enum SFTPTargets {
    /// The first byte of the input is the size of a block. The rest is a stream of packets that arrives in blocks of this size.
    static func packets(_ input: [UInt8]) {
        var reader = InputReader(input)
        let size = max(1, Int(reader.byte()))
        var assembler = PacketAssembler()
        var features = SFTPFeatures()
        do {
            while !reader.isAtEnd {
                assembler.append(reader.bytes(size))
                while let packet = try assembler.next() { try read(packet, &features) }
            }
        } catch {
            require(!"\(error)".isEmpty, "An error has a message.")
        }
    }

    private static func read(_ packet: ArraySlice<UInt8>, _ features: inout SFTPFeatures) throws {
        switch try ServerPacket(packet) {
        case .version(let version): require(version.extensions.count <= packet.count, "Each extension uses at least one byte.")
        case .response(_, .names(let names)): for file in names { read(file) }
        case .response(_, .attributes(let attributes)): read(attributes)
        case .response(_, .extended(let reply)):
            _ = try? FileSystemSpace(reply)
            if let limits = try? ServerLimits(reply) { features.apply(limits) }
            require(features.readSize > 0 && features.writeSize > 0, "A request transfers at least one byte.")
            if let results = ChecksumCommand.results(reply) {
                require(results.digests.count <= reply.count, "Each digest uses at least one byte of the response.")
            }
        case .response(_, .status(let status)):
            for use in [FileUse.upload, .download] { _ = status.transferError("name", use, at: "server") }
        case .response: break
        }
    }

    private static func read(_ file: ListedFile) {
        read(file.attributes)
        _ = try? RemotePath(bytes: file.name)
    }

    private static func read(_ attributes: FileAttributes) {
        _ = (attributes.kind, RemoteVersion(attributes)?.modificationNanoseconds)
        var writer = PacketWriter(.attributes)
        attributes.write(to: &writer)
        var reader = PacketReader(writer.finish().dropFirst(5))
        let again = try? FileAttributes(from: &reader)
        require(again == attributes, "Encoded attributes decode to the same attributes: \(attributes)")
    }

    /// The input is a stored checkpoint. Its first eight bytes are the number of confirmed bytes.
    static func checkpoint(_ input: [UInt8]) {
        var reader = InputReader(input)
        let stored = Checkpoint(data: Data(reader.rest.dropFirst(8)), confirmed: reader.number())
        if let version = RemoteVersion(stored) {
            let again = (try? version.checkpoint(at: stored.confirmed)).flatMap { RemoteVersion($0) }
            require(again == version, "An encoded checkpoint decodes to the same version: \(version)")
            _ = version.modificationNanoseconds
        }
        guard let upload = UploadCheckpoint(stored) else { return }
        let again = (try? upload.encoded(confirmed: stored.confirmed)).flatMap { UploadCheckpoint($0) }
        require(again == upload, "An encoded checkpoint decodes to the same checkpoint: \(upload)")
        let size = upload.ranges?.last?.end ?? stored.confirmed
        // A transfer starts only from a valid checkpoint.
        guard size >= 0, upload.isSound(stored.confirmed, for: size) else { return }
        require(upload.neededSize(stored.confirmed) <= size, "The part file is not larger than the file.")
        require(upload.unsynced(stored.confirmed).allSatisfy { $0.upperBound <= size }, "Unsynced bytes are within the file.")
        if let (synced, confirmed) = upload.synced(stored.confirmed) {
            require(confirmed > stored.confirmed && synced.isSound(confirmed, for: size), "A synced checkpoint is valid: \(synced)")
        }
        if let ranges = upload.ranges { require(UploadCheckpoint.joined(ranges).count <= ranges.count, "Joining never adds a range.") }
        let reporter = AttemptReporter(progress: { _, _ in }, checkpoint: { _ in })
        let progress = UploadProgress(upload, from: stored.confirmed, size: size, reporter: reporter)
        progress.begin()
        var steps = 0
        while steps < 64, let (index, position) = progress.assignRange() {
            require((0...size).contains(position), "A sender begins within the file.")
            while steps < 64, let claim = progress.claim(upTo: max(1, size / 16), of: index) {
                require(claim.lowerBound >= 0 && claim.upperBound <= size, "A claimed range is within the file.")
                steps += 1
            }
            steps += 1
        }
    }
}
