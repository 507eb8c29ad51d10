public import SystemPackage
public import TransferCore

/// An open local file to upload, and the identity that it must keep.
///
/// The descriptor stays open until the last reference to this object is released. A read on another thread therefore never uses a descriptor that was
/// closed and then reused for another file.
public final class FileReader: Sendable {
    /// The source of the upload.
    public let source: UploadSource

    /// The descriptor, open for reading. Don't close it.
    public let descriptor: FileDescriptor

    private let threads: WorkerThreads

    /// Opens a file and compares it with the identity that the queue recorded. Does not compare a growing file.
    ///
    /// - Parameters:
    ///   - source: The file, with the recorded identity.
    ///   - threads: The threads for blocking calls, also in ``verifyUnchanged()``.
    /// - Throws: A ``/TransferCore/TransferError``. Its class is ``/TransferCore/FailureClass/sourceChanged`` if the file has changed (the message
    ///   describes the change), ``/TransferCore/FailureClass/sourceLost`` if the file is missing or can't be read, or
    ///   ``/TransferCore/FailureClass/noSpace`` if this process lacks descriptors or threads. If the task is cancelled, throws `CancellationError`
    ///   immediately, even if the disk hangs.
    public static func open(_ source: UploadSource, on threads: WorkerThreads) async throws -> FileReader {
        try await threads.runUnlessCancelled {
            let reader = try FileReader(source, threads: threads)
            try reader.compare()
            return reader
        }
    }

    private init(_ source: UploadSource, threads: WorkerThreads) throws(TransferError) {
        self.source = source
        self.threads = threads
        descriptor = try source.open()
    }

    deinit {
        // Nothing was written, so an error here loses no data.
        try? descriptor.close()
    }

    /// Verifies that the file still has the identity that the queue recorded. Call this method after the last read.
    ///
    /// - Throws: The same errors as ``open(_:on:)``.
    public func verifyUnchanged() async throws {
        try await threads.runUnlessCancelled { try self.compare() }
    }

    /// Returns the error for a file that ends before its recorded size.
    public func endedEarly(at offset: Int64) -> TransferError {
        .sourceChanged(source.path, "it ended at byte \(offset) of \(source.size)")
    }

    private func compare() throws(TransferError) {
        guard source.growth == nil else { return }
        let identity = try SourceIdentity(of: descriptor, path: source.path)
        switch identity.difference(from: source.identity) {
        case nil: return
        case .content(let change)?: throw .sourceChanged(source.path, change)
        case .fileReplaced?: throw .sourceChanged(source.path, "another file replaced it")
        }
    }
}

extension TransferError {
    fileprivate static func sourceChanged(_ path: FilePath, _ change: String) -> TransferError {
        TransferError(.sourceChanged, .sourceChanged, "\(path) changed during the upload: \(change).")
    }
}
