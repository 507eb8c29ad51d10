import Dispatch
public import Foundation
import Locking
import TransferCore

extension StreamWriter {
    /// Returns an output stream that writes to this writer, for code that writes to Foundation's streams.
    ///
    /// A write blocks its thread while the buffer is full, so don't write in an async function. The stream sends no delegate events: use
    /// `hasSpaceAvailable`.
    ///
    /// > Warning: Unless a write failed, closing the stream calls ``finish()``, so the item completes with the bytes written so far. Don't write
    /// > `defer { stream.close() }` around code that can throw: use ``withOutputStream(_:)``, or call ``fail(_:)`` before you close the stream.
    public func makeOutputStream() -> OutputStream { WriterOutputStream(self, finishesOnClose: true) }

    /// Calls a function with an open output stream that writes to this writer, and then ends the stream item. Calls ``finish()`` if the function
    /// returns, and ``fail(_:)`` if it throws or a write failed. If the function closes the stream, later writes fail. Closing has no other effect.
    ///
    /// ```swift
    /// try writer.withOutputStream { stream in
    ///     try encoder.encode(records, to: stream)
    /// }
    /// ```
    ///
    /// Writes block as with ``makeOutputStream()``.
    ///
    /// - Returns: The result of the function.
    /// - Throws: The error of the function, or of a failed write.
    public func withOutputStream<Result>(_ body: (OutputStream) throws -> Result) throws -> Result {
        let stream = WriterOutputStream(self, finishesOnClose: false)
        stream.open()
        defer { stream.close() }
        do {
            let result = try body(stream)
            if let error = stream.streamError { throw error }
            finish()
            return result
        } catch {
            fail(error)
            throw error
        }
    }
}

private final class WriterOutputStream: OutputStream {
    /// Nil only in a stream created by an inherited initializer, which can't be opened.
    private let writer: StreamWriter?
    private let finishesOnClose: Bool
    private var status = Status.notOpen
    private var failure: (any Error)?

    init(_ writer: StreamWriter, finishesOnClose: Bool) {
        self.writer = writer
        self.finishesOnClose = finishesOnClose
        super.init(toMemory: ())
    }

    #if !canImport(Darwin)
        required init(toMemory: ()) {
            writer = nil
            finishesOnClose = false
            super.init(toMemory: ())
        }
    #endif

    override func open() {
        if status == .notOpen, writer != nil { status = .open }
    }

    override func close() {
        guard status == .open || status == .error else { return }
        if failure == nil, finishesOnClose { writer?.finish() }
        status = .closed
    }

    override var streamStatus: Status { status }
    override var streamError: (any Error)? { failure }
    override var hasSpaceAvailable: Bool { status == .open && writer?.canWrite == true }

    override func write(_ buffer: UnsafePointer<UInt8>, maxLength count: Int) -> Int {
        guard let writer, status == .open else { return -1 }
        guard count > 0 else { return 0 }
        do {
            let bytes = unsafe UnsafeRawBufferPointer(start: buffer, count: count)
            while true {
                let written = try unsafe writer.tryWrite(bytes)
                if written > 0 { return written }
                try waitForRoom(writer)
            }
        } catch {
            failure = error
            status = .error
            return -1
        }
    }

    private func waitForRoom(_ writer: StreamWriter) throws {
        let (outcome, isDone) = (Locked<(any Error)?>(nil), DispatchSemaphore(value: 0))
        Task {
            do { try await writer.whenWritable() } catch { outcome.withLock { $0 = error } }
            isDone.signal()
        }
        isDone.wait()
        if let error = outcome.withLock({ $0 }) { throw error }
    }
}
