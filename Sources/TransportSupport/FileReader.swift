public import SystemPackage
public import TransferCore

/// An open local file that is being sent, and what it must still be.
///
/// Keeps its descriptor open until the last reference goes, so that a read under way on another thread never meets a descriptor that was
/// closed and given to another file.
public final class FileReader: Sendable {
    /// The file as the queue named it.
    public let source: UploadSource

    /// Open for reading; never closed by a user of this object.
    public let descriptor: FileDescriptor

    private let threads: WorkerThreads

    /// Opens a file and makes sure that it is the one that the queue looked at. One that still grows is not compared.
    ///
    /// - Parameter threads: Does what may block; also used by ``verifyUnchanged()``.
    /// - Throws: A ``TransferError`` of the class ``FailureClass/sourceChanged``, which says what changed, or
    ///   ``FailureClass/sourceLost``; `CancellationError` at once, however long the disk takes.
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
        // Nothing was written, so nothing can be lost by an error here.
        try? descriptor.close()
    }

    /// Makes sure, after the last byte was read, that the file did not change meanwhile.
    ///
    /// - Throws: As ``open(_:on:)``.
    public func verifyUnchanged() async throws {
        try await threads.runUnlessCancelled { try self.compare() }
    }

    /// The error for a file that ended before the size that it had.
    public func endedEarly(at offset: Int64) -> TransferError {
        .sourceChanged(source.path, "it ended at byte \(offset) of \(source.size)")
    }

    private func compare() throws(TransferError) {
        guard source.growth == nil else { return }
        let identity = try SourceIdentity(of: descriptor, path: source.path)
        switch identity.difference(from: source.identity) {
        case nil: return
        case .content(let change)?: throw .sourceChanged(source.path, change)
        case .fileReplaced?: throw .sourceChanged(source.path, "another file was put in its place")
        }
    }
}

extension TransferError {
    fileprivate static func sourceChanged(_ path: FilePath, _ change: String) -> TransferError {
        TransferError(.sourceChanged, .sourceChanged, "\(path) changed while it was sent: \(change).")
    }
}
