import Foundation
import SystemPackage
import TransferCore
import TransportSupport

extension FolderTransport {
    /// Copies a file in blocks, starting after the bytes that the part file already has.
    ///
    /// - Parameter checkpoint: Creates a checkpoint that covers the given number of bytes.
    func copy(
        from reader: FileReader, to writer: FileWriter, size: Int64, _ reporter: AttemptReporter,
        checkpoint: @Sendable (Int64) throws -> Checkpoint
    ) async throws {
        var (position, confirmed) = (writer.start, writer.start)
        reporter.report(sent: position, confirmed: confirmed)
        do {
            while position < size {
                try Task.checkCancellation()
                let allowance = reporter.allowance(upTo: Int(min(256 * 1024, size - position)))
                guard allowance.bytes > 0 else {
                    try await Task.sleep(for: max(allowance.retryAfter, .milliseconds(1)))
                    continue
                }
                position += try await copyBlock(of: allowance.bytes, at: position, from: reader, to: writer)
                reporter.report(sent: position, confirmed: confirmed)
                guard try await writer.syncIfDue(upTo: position) else { continue }
                try await reporter.save(checkpoint(position))
                confirmed = position
                reporter.report(sent: position, confirmed: confirmed)
            }
        } catch let error as TransferError {
            // Keep the bytes that arrived. Cancellation throws `CancellationError`, which skips this step: a cancelled attempt must end quickly.
            if (try? await writer.sync(upTo: position)) != nil { try await reporter.save(checkpoint(position)) }
            throw error
        }
        try await writer.sync(upTo: position)
        try await reporter.save(checkpoint(position))
        reporter.report(sent: position, confirmed: position)
    }

    /// Copies at most `count` bytes, and returns the number of copied bytes.
    private func copyBlock(of count: Int, at position: Int64, from reader: FileReader, to writer: FileWriter) async throws -> Int64 {
        let block: Data
        do {
            block = try await threads.run { [file = reader.descriptor, drive] in
                var block = Data(count: count)
                let length = try unsafe block.withUnsafeMutableBytes { try unsafe file.read(fromAbsoluteOffset: position, into: $0) }
                return try drive(block.prefix(length))
            }
        } catch let code as Errno {
            throw TransferError(.transient, .connectionLost, "The drive failed at byte \(position).", cause: code.description)
        }
        guard !block.isEmpty else { throw reader.endedEarly(at: position) }
        try await writer.write(block, at: position)
        return Int64(block.count)
    }
}
