import Foundation
import TransferCore

@testable import TransportSFTP

/// Messages of SFTP servers, and the stored state of SFTP transfers.
enum SFTPTargets {
    /// A stream of packets in pieces: the first byte of the input is the size of a piece.
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
            require(!"\(error)".isEmpty, "A fault has a message.")
        }
    }

    private static func read(_ packet: ArraySlice<UInt8>, _ features: inout SFTPFeatures) throws {
        switch try ServerPacket(packet) {
        case .version(let version): require(version.extensions.count <= packet.count, "Each extension uses bytes.")
        case .answer(_, .names(let names)): for file in names { read(file) }
        case .answer(_, .attributes(let attributes)): read(attributes)
        case .answer(_, .extended(let reply)):
            _ = try? FileSystemSpace(reply)
            if let limits = try? ServerLimits(reply) { features.note(limits) }
            require(features.readSize > 0 && features.writeSize > 0, "A request moves at least a byte.")
            if let results = ChecksumCommand.results(reply) { require(results.digests.count <= reply.count, "Each digest uses bytes.") }
        case .answer(_, .status(let status)):
            for use in [FileUse.upload, .download] { _ = status.transferError("name", use, at: "server") }
        case .answer: break
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
        require(again == attributes, "Attributes read back are the same: \(attributes)")
    }

    /// A stored checkpoint: the first eight bytes of the input are the number of confirmed bytes.
    static func checkpoint(_ input: [UInt8]) {
        var reader = InputReader(input)
        let stored = Checkpoint(data: Data(reader.rest.dropFirst(8)), confirmed: reader.number())
        if let version = RemoteVersion(stored) {
            let again = (try? version.checkpoint(at: stored.confirmed)).flatMap { RemoteVersion($0) }
            require(again == version, "A checkpoint read back is the same: \(version)")
            _ = version.modificationNanoseconds
        }
        guard let upload = UploadCheckpoint(stored) else { return }
        let again = (try? upload.encoded(confirmed: stored.confirmed)).flatMap { UploadCheckpoint($0) }
        require(again == upload, "A checkpoint read back is the same: \(upload)")
        let size = upload.ranges?.last?.end ?? stored.confirmed
        // A transfer starts only from a valid checkpoint.
        guard size >= 0, upload.isSound(stored.confirmed, for: size) else { return }
        require(upload.neededSize(stored.confirmed) <= size, "The part file does not exceed the file.")
        require(upload.unsynced(stored.confirmed).allSatisfy { $0.upperBound <= size }, "Unsynced bytes are within the file.")
        if let (synced, confirmed) = upload.synced(stored.confirmed) {
            require(confirmed > stored.confirmed && synced.isSound(confirmed, for: size), "A synced checkpoint is valid: \(synced)")
        }
        if let ranges = upload.ranges { require(UploadCheckpoint.joined(ranges).count <= ranges.count, "Joining adds no range.") }
        let reporter = AttemptReporter(progress: { _, _ in }, checkpoint: { _ in })
        let record = UploadRecord(upload, from: stored.confirmed, size: size, reporter: reporter)
        record.begin()
        var turns = 0
        while turns < 64, let (index, position) = record.take() {
            require((0...size).contains(position), "A sender begins within the file.")
            while turns < 64, let piece = record.claim(upTo: max(1, size / 16), of: index) {
                require(piece.lowerBound >= 0 && piece.upperBound <= size, "A piece is within the file.")
                turns += 1
            }
            turns += 1
        }
    }
}
