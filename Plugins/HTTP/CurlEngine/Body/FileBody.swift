import CCurl
import SystemPackage
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A buffer that a reader thread fills with at most 256 KiB of a file.
struct FileReadBuffer: Sendable {
    /// The position in the file, in bytes, of the first byte to read.
    var offset: Int64
    let storage: TransferBuffer
    /// The maximum number of bytes to read.
    let limit: Int
    /// The number of bytes that the reader thread read into the storage; 0 at the end of the file, and after an error.
    var count = 0
    var errorNumber: CInt = 0
}

/// Reads a range of a file for libcurl: cached bytes directly from the page cache, other bytes on a reader thread. Used only on the thread of
/// ``CurlLoop``.
final class FileBody {
    enum Read {
        case bytes(Int)
        /// A reader thread is filling a buffer. Afterwards, the loop passes the buffer to ``receive(_:)``.
        case later
        case failed(TransferError)
    }

    /// The size of a buffer in bytes, small enough for many concurrent transfers.
    private static let bufferSize = 256 * 1024
    /// The number of bytes that the system should read ahead after each read by a reader thread.
    private static let readAheadSize = 8 * 1024 * 1024

    private let file: FileReader
    /// The position in the file of the first byte that libcurl has not received.
    private var position: Int64
    private let end: Int64
    /// Fills a buffer on a reader thread and sends it back to the loop. Throws if no reader thread can start.
    private let readOnThread: (FileReadBuffer) throws(TransferError) -> Void
    /// The filled buffers with bytes that libcurl has not received, in file order. An empty buffer shows the end of the file or an error.
    private var delivered: [FileReadBuffer] = []
    private var spare: TransferBuffer?
    private var isReadingOnThread = false
    private var canReadCached: Bool

    /// - Parameter canReadCached: Whether to read cached bytes directly, if the file system supports that.
    init(
        _ file: FileReader, offset: Int64, length: Int64, canReadCached: Bool,
        readOnThread: @escaping (FileReadBuffer) throws(TransferError) -> Void
    ) {
        self.file = file
        self.canReadCached = canReadCached
        position = offset
        end = offset + length
        self.readOnThread = readOnThread
    }

    var remaining: Int64 { end - position }

    /// Copies available bytes into libcurl's buffer, without waiting for the disk. The buffer must not be larger than ``remaining``.
    func read(into buffer: UnsafeMutableRawBufferPointer) -> Read {
        if let filled = delivered.first {
            if filled.errorNumber != 0 { return .failed(.sourceUnavailable(file.source.path, errno: filled.errorNumber)) }
            guard filled.count > 0 else { return .failed(file.endedEarly(at: position)) }
            let count = unsafe copyBytes(from: filled, into: buffer)
            // Without cached reads, a reader thread fills one buffer in advance, so that libcurl rarely waits for the disk.
            if !canReadCached, delivered.count < 2 {
                do { try readNext() } catch { return .failed(error) }
            }
            return .bytes(count)
        }
        if isReadingOnThread { return .later }
        if canReadCached, let result = unsafe readCached(into: buffer) { return result }
        do { try readNext() } catch { return .failed(error) }
        return .later
    }

    func receive(_ filled: FileReadBuffer) {
        isReadingOnThread = false
        delivered.append(filled)
    }

    /// Copies bytes of a filled buffer into libcurl's buffer. Keeps the filled buffer for reuse when libcurl has received all of its bytes.
    ///
    /// - Returns: The number of copied bytes.
    private func copyBytes(from filled: FileReadBuffer, into buffer: UnsafeMutableRawBufferPointer) -> Int {
        let start = Int(position - filled.offset)
        let count = min(buffer.count, filled.count - start)
        unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: filled.storage.bytes[start..<start + count]))
        position += Int64(count)
        if start + count == filled.count { spare = delivered.removeFirst().storage }
        return count
    }

    /// Reads from the page cache; returns nil if that is not possible without waiting for the disk.
    private func readCached(into buffer: UnsafeMutableRawBufferPointer) -> Read? {
        #if os(Linux)
            let count = unsafe ccurl_read_cached(file.descriptor.rawValue, buffer.baseAddress, buffer.count, off_t(position))
            if count > 0 {
                position += Int64(count)
                return .bytes(count)
            }
            if count == 0 { return .failed(file.endedEarly(at: position)) }
            // EAGAIN means that the bytes are not in memory. Other errors, usually EOPNOTSUPP, mean that this file system does not support the flag.
            if errno != EAGAIN { canReadCached = false }
        #else
            canReadCached = false
        #endif
        return nil
    }

    /// Requests the next buffer from a reader thread. Does nothing if a reader thread is already reading for this body, if no bytes
    /// remain, or if the last read failed or reached the end of the file.
    private func readNext() throws(TransferError) {
        let offset = delivered.last.map { $0.offset + Int64($0.count) } ?? position
        guard !isReadingOnThread, offset < end, delivered.last?.errorNumber ?? 0 == 0, delivered.last?.count != 0 else { return }
        let storage = spare ?? TransferBuffer(count: Int(min(Int64(Self.bufferSize), end - offset)))
        spare = nil
        isReadingOnThread = true
        let limit = unsafe Int(min(Int64(storage.bytes.count), end - offset))
        try readOnThread(FileReadBuffer(offset: offset, storage: storage, limit: limit))
    }

    /// Fills a buffer from the disk, and passes its bytes to the observer. Called on a reader thread, because it blocks.
    static func fill(
        _ buffer: FileReadBuffer, from file: FileReader, observedBy observe: (@Sendable (RawSpan) -> Void)?
    ) -> FileReadBuffer {
        var buffer = buffer
        let bytes = unsafe buffer.storage.bytes
        var count: Int
        repeat {
            count = unsafe pread(file.descriptor.rawValue, bytes.baseAddress, buffer.limit, off_t(buffer.offset))
        } while count < 0 && errno == EINTR
        if count < 0 { buffer.errorNumber = errno }
        buffer.count = max(0, count)
        if buffer.count > 0 { observe?(unsafe UnsafeRawBufferPointer(rebasing: bytes[..<buffer.count]).bytes) }
        #if os(Linux)
            // A failure is harmless, because the call only gives advice.
            _ = posix_fadvise(
                file.descriptor.rawValue, off_t(buffer.offset + Int64(buffer.count)), off_t(readAheadSize), POSIX_FADV_WILLNEED)
        #endif
        return buffer
    }
}
