import Dispatch
import Foundation
import SystemPackage
import TransferCore

/// Reads a source on a dispatch queue, because a slow disk must not block the cooperative thread pool.
struct SourceReader: Sendable {
    private let source: UploadSource
    private let descriptor: FileDescriptor

    private static let queue = DispatchQueue(label: "transport-testing.reading", attributes: .concurrent)

    init(opening source: UploadSource) async throws {
        self.source = source
        descriptor = try await Self.onQueue {
            let descriptor = try source.open()
            do {
                try Self.compare(descriptor, with: source)
                return descriptor
            } catch {
                try? descriptor.close()
                throw error
            }
        }
    }

    /// Reads bytes at a position. Returns fewer than `count` only at the end of the file.
    func read(at position: Int64, count: Int) async throws -> Data {
        try await Self.onQueue { [descriptor] in
            var data = Data(count: count)
            let read = try unsafe data.withUnsafeMutableBytes { buffer in
                var total = 0
                while total < count {
                    let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[total...])
                    let read = try unsafe descriptor.read(fromAbsoluteOffset: position + Int64(total), into: rest)
                    guard read > 0 else { break }
                    total += read
                }
                return total
            }
            return data.prefix(read)
        }
    }

    /// Checks that the open file still has the recorded identity. Does not check a growing source.
    func verifyUnchanged() async throws {
        try await Self.onQueue { [descriptor, source] in try Self.compare(descriptor, with: source) }
    }

    /// Returns the readable size of the source, and whether the source is complete.
    ///
    /// - Throws: The error of the producer of a growing source.
    func extent() throws(TransferError) -> (end: Int64, isComplete: Bool) {
        guard let growth = source.growth else { return (source.size, true) }
        switch growth.extent {
        case .growing(let end): return (end, false)
        case .complete(let end): return (end, true)
        case .failed(let error): throw error
        }
    }

    func close() {
        try? descriptor.close()
    }

    private static func compare(_ descriptor: FileDescriptor, with source: UploadSource) throws {
        guard source.growth == nil else { return }
        switch try SourceIdentity(of: descriptor, path: source.path).difference(from: source.identity) {
        case nil: return
        case .content(let sentence):
            throw TransferError(.sourceChanged, .sourceChanged, "\(source.path) changed: \(sentence). Send it again.")
        case .fileReplaced:
            throw TransferError(.sourceChanged, .sourceChanged, "Another file replaced \(source.path). Send it again.")
        }
    }

    private static func onQueue<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            queue.async { continuation.resume(with: Result(catching: body)) }
        }
    }
}
