import Dispatch
import Foundation
import SystemPackage
import TransferCore

/// One upload: a file of the bytes so far, and its record.
final class Upload: Sendable {
    let record: UploadRecord
    /// Where the bytes are.
    let file: FilePath
    private let recordFile: FilePath
    private let state: Locked<State>

    private struct State {
        var offset: Int64
        var holder: Connection?
        var waiting: [DispatchSemaphore] = []
    }

    var id: String { record.id }
    /// How many bytes are stored: the size of the file.
    var offset: Int64 { state.withLock { $0.offset } }
    var isComplete: Bool { offset == record.length }

    /// Makes a new upload on disk.
    init(creating record: UploadRecord, in folder: FilePath) throws {
        self.record = record
        (file, recordFile) = Self.files(of: record.id, in: folder)
        state = Locked(State(offset: 0))
        try FileDescriptor.open(file, .writeOnly, options: [.create, .truncate], permissions: .ownerReadWrite).close()
        try writeRecord()
    }

    /// Takes up the upload of a record file; nil if its bytes are gone.
    init?(opening recordFile: FilePath, in folder: FilePath) throws {
        record = try JSONDecoder().decode(UploadRecord.self, from: Data(contentsOf: URL(filePath: recordFile.string)))
        (file, self.recordFile) = Self.files(of: record.id, in: folder)
        guard let descriptor = try? FileDescriptor.open(file, .readOnly) else { return nil }
        state = Locked(State(offset: try descriptor.closeAfter { try descriptor.seek(offset: 0, from: .end) }))
    }

    private static func files(of id: String, in folder: FilePath) -> (FilePath, FilePath) {
        (folder.appending(id + ".bin"), folder.appending(id + ".json"))
    }

    /// Makes one connection the only one that touches the bytes, on its own thread, until ``release()``.
    ///
    /// Another that has them is interrupted: it keeps what it received so far, however dead its other end is, and gives way.
    func acquire(for connection: Connection) {
        while true {
            let released: DispatchSemaphore? = state.withLock { state in
                guard let holder = state.holder else {
                    state.holder = connection
                    return nil
                }
                holder.interruptReading()
                let released = DispatchSemaphore(value: 0)
                state.waiting.append(released)
                return released
            }
            guard let released else { return }
            released.wait()
        }
    }

    /// Lets others have the bytes.
    func release() {
        let waiting = state.withLock { state in
            defer { state.waiting = [] }
            state.holder = nil
            return state.waiting
        }
        for released in waiting { released.signal() }
    }

    /// Appends bytes. For the holder only.
    ///
    /// - Returns: The offset after them.
    func append(_ bytes: ArraySlice<UInt8>, to descriptor: FileDescriptor) throws -> Int64 {
        try descriptor.writeAll(toAbsoluteOffset: offset, bytes)
        return state.withLock { state in
            state.offset += Int64(bytes.count)
            return state.offset
        }
    }

    /// Writes the record, with whether the upload is complete.
    func writeRecord() throws {
        var record = record
        record.complete = isComplete
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try encoder.encode(record).write(to: URL(filePath: recordFile.string), options: .atomic)
    }

    /// Deletes both files. For the holder only.
    func remove() throws {
        // The record first: without it the bytes are nobody's, while a record without bytes would promise some.
        try FileManager.default.removeItem(atPath: recordFile.string)
        try FileManager.default.removeItem(atPath: file.string)
    }
}
