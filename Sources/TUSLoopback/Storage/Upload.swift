import Foundation
import Locking
import SystemPackage
import TransferCore

import struct NIOCore.ByteBuffer

/// An upload: a file with the received bytes, and a JSON file with its properties (the record).
final class Upload: Sendable {
    let id: String
    let file: FilePath
    private let recordFile: FilePath
    private let state: Locked<State>

    private struct State {
        var record: StoredUpload
        var offset: Int64
        /// Whether a request has exclusive access.
        var isHeld = false
        /// The connection whose body is being received, if any.
        var holder: Connection?
        var waiting: [(connection: Connection?, continuation: CheckedContinuation<Void, Never>)] = []
    }

    var record: StoredUpload { state.withLock { $0.record } }
    /// The number of stored bytes, which is the size of the file.
    var offset: Int64 { state.withLock { $0.offset } }
    var isComplete: Bool { state.withLock { $0.record.isClosed ?? ($0.offset == $0.record.length) } }

    /// Creates an upload on disk. Blocks.
    init(creating record: StoredUpload, in folder: FilePath) throws {
        id = record.id
        (file, recordFile) = Self.files(of: record.id, in: folder)
        state = Locked(State(record: record, offset: 0))
        try FileDescriptor.open(file, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite).close()
        try writeRecord()
    }

    /// Opens the upload that a JSON file describes, and removes its unverified bytes. Returns nil if the file with the bytes can't be opened. Blocks.
    init?(opening recordFile: FilePath, in folder: FilePath) throws {
        let record = try JSONDecoder().decode(StoredUpload.self, from: Data(contentsOf: URL(filePath: recordFile.string)))
        id = record.id
        (file, self.recordFile) = Self.files(of: record.id, in: folder)
        guard let descriptor = try? FileDescriptor.open(file, .readOnly) else { return nil }
        state = Locked(State(record: record, offset: try descriptor.closeAfter { try descriptor.seek(offset: 0, from: .end) }))
        if let offset = record.unverifiedFrom { try truncate(to: offset) }
    }

    private static func files(of id: String, in folder: FilePath) -> (FilePath, FilePath) {
        (folder.appending(id + ".bin"), folder.appending(id + ".json"))
    }

    /// Waits for exclusive access to the bytes, which lasts until ``release()``.
    ///
    /// Interrupts a request that is receiving a body, even if the request's client has disconnected.
    ///
    /// - Parameters:
    ///   - connection: The connection whose body will be received; nil for a request without a body.
    ///   - queued: Called when the request has access or waits for it, before this method returns.
    func acquire(for connection: Connection?, queued: () -> Void = {}) async {
        await withCheckedContinuation { continuation in
            let (isAcquired, holder) = state.withLock { state in
                guard state.isHeld else {
                    state.isHeld = true
                    state.holder = connection
                    return (true, nil as Connection?)
                }
                state.waiting.append((connection, continuation))
                return (false, state.holder)
            }
            queued()
            if isAcquired { continuation.resume() }
            holder?.interrupt(for: .request)
        }
    }

    /// Ends the exclusive access. The next waiting request gets access. If further requests wait, immediately interrupts the request that got
    /// access.
    func release() {
        let (next, interrupted) = state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.isHeld = false
                state.holder = nil
                return (nil as CheckedContinuation<Void, Never>?, nil as Connection?)
            }
            let next = state.waiting.removeFirst()
            state.holder = next.connection
            return (next.continuation, state.waiting.isEmpty ? nil : next.connection)
        }
        interrupted?.interrupt(for: .request)
        next?.resume()
    }

    /// Appends bytes. Requires exclusive access. Blocks.
    ///
    /// - Returns: The new offset.
    func append(_ bytes: ByteBuffer, to descriptor: FileDescriptor) throws -> Int64 {
        let offset = offset
        _ = try unsafe bytes.withUnsafeReadableBytes { bytes in
            try unsafe descriptor.writeAll(toAbsoluteOffset: offset, bytes)
        }
        return state.withLock { state in
            state.offset += Int64(bytes.readableBytes)
            return state.offset
        }
    }

    /// Removes the bytes after an offset. Requires exclusive access. Blocks.
    func truncate(to offset: Int64) throws {
        let descriptor = try FileDescriptor.open(file, .writeOnly)
        try descriptor.closeAfter { try descriptor.resize(to: offset) }
        state.withLock { $0.offset = offset }
        try change { $0.unverifiedFrom = nil }
    }

    /// Replaces the bytes with the bytes of the partial uploads, in the given order. Requires exclusive access. Blocks.
    func concatenate(_ partials: [Upload]) throws {
        let descriptor = try FileDescriptor.open(file, .writeOnly, options: .truncate)
        state.withLock { $0.offset = 0 }
        try descriptor.closeAfter {
            for partial in partials {
                let source = try FileDescriptor.open(partial.file, .readOnly)
                try source.closeAfter {
                    while true {
                        let bytes = try ByteBuffer(reading: source, at: nil, atMost: 1024 * 1024)
                        guard bytes.readableBytes > 0 else { break }
                        _ = try append(bytes, to: descriptor)
                    }
                }
            }
        }
        let size = offset
        try change { $0.length = size }
    }

    /// Changes the properties in memory and on disk. Requires exclusive access. Blocks.
    func change(_ body: (inout StoredUpload) -> Void) throws {
        state.withLock { body(&$0.record) }
        try writeRecord()
    }

    /// Changes the expiry in memory; the next ``change(_:)`` writes it to disk. Requires exclusive access.
    func setExpiry(_ expires: Int?) {
        state.withLock { $0.record.expires = expires }
    }

    private func writeRecord() throws {
        var record = record
        record.complete = isComplete
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try encoder.encode(record).write(to: URL(filePath: recordFile.string), options: .atomic)
    }

    /// Removes both files. Requires exclusive access. Blocks.
    func remove() throws {
        // Remove the JSON file first. If the removal of the bytes then fails, a restarted server ignores the bytes.
        try FileManager.default.removeItem(atPath: recordFile.string)
        try FileManager.default.removeItem(atPath: file.string)
    }
}

extension ByteBuffer {
    /// Reads bytes of a file at an offset, or at the file position if the offset is nil. Empty at the end of the file. Blocks.
    init(reading descriptor: FileDescriptor, at offset: Int64?, atMost count: Int) throws {
        self.init()
        _ = try unsafe writeWithUnsafeMutableBytes(minimumWritableBytes: count) { buffer in
            let buffer = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            guard let offset else { return try unsafe descriptor.read(into: buffer) }
            return try unsafe descriptor.read(fromAbsoluteOffset: offset, into: buffer)
        }
    }
}
