import Foundation
import Locking
import SystemPackage
import TransferCore

import struct NIOCore.ByteBuffer

/// One upload: a file of the bytes so far, and its record.
final class Upload: Sendable {
    let id: String
    /// Where the bytes are.
    let file: FilePath
    private let recordFile: FilePath
    private let state: Locked<State>

    private struct State {
        var record: UploadRecord
        var offset: Int64
        var isHeld = false
        /// Whose body the holder is taking, if any.
        var holder: Connection?
        var waiting: [(connection: Connection?, continuation: CheckedContinuation<Void, Never>)] = []
    }

    var record: UploadRecord { state.withLock { $0.record } }
    /// How many bytes are stored: the size of the file.
    var offset: Int64 { state.withLock { $0.offset } }
    var isComplete: Bool { state.withLock { $0.offset == $0.record.length } }

    /// Makes a new upload on disk. Blocks.
    init(creating record: UploadRecord, in folder: FilePath) throws {
        id = record.id
        (file, recordFile) = Self.files(of: record.id, in: folder)
        state = Locked(State(record: record, offset: 0))
        try FileDescriptor.open(file, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite).close()
        try writeRecord()
    }

    /// Takes up the upload of a record file; nil if its bytes are gone. Blocks.
    init?(opening recordFile: FilePath, in folder: FilePath) throws {
        let record = try JSONDecoder().decode(UploadRecord.self, from: Data(contentsOf: URL(filePath: recordFile.string)))
        id = record.id
        (file, self.recordFile) = Self.files(of: record.id, in: folder)
        guard let descriptor = try? FileDescriptor.open(file, .readOnly) else { return nil }
        state = Locked(State(record: record, offset: try descriptor.closeAfter { try descriptor.seek(offset: 0, from: .end) }))
        if let offset = record.unverifiedFrom { try truncate(to: offset) }
    }

    private static func files(of id: String, in folder: FilePath) -> (FilePath, FilePath) {
        (folder.appending(id + ".bin"), folder.appending(id + ".json"))
    }

    /// Makes one request the only one that touches the bytes, until ``release()``.
    ///
    /// A body that is being taken is interrupted: what was received so far is kept, however dead the other end is, and it gives way.
    ///
    /// - Parameters:
    ///   - connection: The connection whose body is to be taken; nil for a request that holds the bytes for a moment only.
    ///   - queued: Called once the request's place is settled, though others may be before it.
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

    /// Lets the next request have the bytes.
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

    /// Appends bytes. For the holder only. Blocks.
    ///
    /// - Returns: The offset after them.
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

    /// Takes bytes away again that turned out wrong. For the holder only. Blocks.
    func truncate(to offset: Int64) throws {
        let descriptor = try FileDescriptor.open(file, .writeOnly)
        try descriptor.closeAfter { try descriptor.resize(to: offset) }
        state.withLock { $0.offset = offset }
        try change { $0.unverifiedFrom = nil }
    }

    /// Makes the bytes those of its parts, one after the other. For the holder only. Blocks.
    func concatenate(_ parts: [Upload]) throws {
        let descriptor = try FileDescriptor.open(file, .writeOnly, options: .truncate)
        state.withLock { $0.offset = 0 }
        try descriptor.closeAfter {
            for part in parts {
                let source = try FileDescriptor.open(part.file, .readOnly)
                try source.closeAfter {
                    while true {
                        let piece = try ByteBuffer(reading: source, at: nil, atMost: 1024 * 1024)
                        guard piece.readableBytes > 0 else { break }
                        _ = try append(piece, to: descriptor)
                    }
                }
            }
        }
        let size = offset
        try change { $0.length = size }
    }

    /// Changes the record, also on disk, with whether the upload is complete. For the holder only. Blocks.
    func change(_ body: (inout UploadRecord) -> Void) throws {
        state.withLock { body(&$0.record) }
        try writeRecord()
    }

    /// Puts off when the upload is removed, until the next ``change(_:)`` only in memory. For the holder only.
    func postpone(to expires: Int?) {
        state.withLock { $0.record.expires = expires }
    }

    private func writeRecord() throws {
        var record = record
        record.complete = isComplete
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try encoder.encode(record).write(to: URL(filePath: recordFile.string), options: .atomic)
    }

    /// Deletes both files. For the holder only. Blocks.
    func remove() throws {
        // The record first: without it the bytes are nobody's, while a record without bytes would promise some.
        try FileManager.default.removeItem(atPath: recordFile.string)
        try FileManager.default.removeItem(atPath: file.string)
    }
}

extension ByteBuffer {
    /// Reads what is in a file there, or where it was read to last; empty at its end. Blocks.
    init(reading descriptor: FileDescriptor, at offset: Int64?, atMost count: Int) throws {
        self.init()
        _ = try unsafe writeWithUnsafeMutableBytes(minimumWritableBytes: count) { buffer in
            let buffer = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<count])
            guard let offset else { return try unsafe descriptor.read(into: buffer) }
            return try unsafe descriptor.read(fromAbsoluteOffset: offset, into: buffer)
        }
    }
}
