public import Foundation
import Locking
public import TransferCore

/// A form that a ``MemoryTransport`` received.
public struct MemoryForm: Hashable, Sendable {
    /// A part of a form.
    public struct Part: Hashable, Sendable {
        /// The name of the field.
        public let field: String
        /// The name of the file; nil for a text field.
        public let name: String?
        /// The media type that the app set, if any; nil for a text field.
        public let mediaType: String?
        /// The content of the file, or the text as UTF-8.
        public let content: Data
    }

    /// The remote name of the form.
    public let path: RemotePath
    /// The parts, in order.
    public let parts: [Part]
}

extension MemoryTransport: FormUploading {
    /// Does nothing, because the transport accepts all options.
    public func validateForms(with options: AttemptOptions, at endpoint: Endpoint) {}

    /// The complete forms, in the order in which they arrived. A form that was sent twice occurs twice.
    public var forms: [MemoryForm] { state.withLock { $0.forms } }

    /// Transfers a form. Like the form handler of a web server, the other end keeps nothing of an incomplete form.
    ///
    /// The positions of gates and cuts are byte positions in the sequence of all files of the form.
    func send(
        _ form: UploadForm, _ attempt: FileAttempt, _ index: Int, _ reporter: AttemptReporter, _ fault: MemoryFault?
    ) async throws -> TransferReceipt {
        try await reporter.reportRecord()
        let path = attempt.remotePath.description
        let cut: Int64? = if case .cut(let bytes) = fault { max(0, bytes) } else { nil }
        var position: Int64 = 0
        var parts: [MemoryForm.Part] = []
        try await pass(path, at: position)
        for part in form.parts {
            switch part {
            case .field(let name, let value):
                parts.append(MemoryForm.Part(field: name, name: nil, mediaType: nil, content: Data(value.utf8)))
            case .file(let file):
                let reader = try await SourceReader(opening: file.source)
                defer { reader.close() }
                var content = Data()
                while Int64(content.count) < file.length {
                    try Task.checkCancellation()
                    if let cut, position >= cut { throw connectionLost(attempt) }
                    let wanted = min(
                        Int64(chunkSize), file.length - Int64(content.count), nextGate(path, after: position) - position,
                        cut.map { $0 - position } ?? .max)
                    let allowance = reporter.allowance(upTo: Int(wanted))
                    guard allowance.bytes > 0 else {
                        try await Task.sleep(for: allowance.retryAfter)
                        continue
                    }
                    let chunk = try await reader.read(at: file.offset + Int64(content.count), count: min(Int(wanted), allowance.bytes))
                    guard !chunk.isEmpty else {
                        throw TransferError(
                            .sourceChanged, .sourceChanged, "\(file.source.path) became shorter during the upload. Send it again.")
                    }
                    content += chunk
                    position += Int64(chunk.count)
                    let moved = Int64(chunk.count)
                    state.withLock { $0.attempts[index].bytesMoved += moved }
                    reporter.report(sent: position, confirmed: 0)
                    try await pass(path, at: position)
                }
                try await reader.verifyUnchanged()
                parts.append(MemoryForm.Part(field: file.field, name: file.name, mediaType: file.mediaType, content: content))
            }
        }
        try Task.checkCancellation()
        let received = MemoryForm(path: attempt.remotePath, parts: parts)
        state.withLock { $0.forms.append(received) }
        if cut != nil { throw connectionLost(attempt) }
        return TransferReceipt(bytes: position, remoteURL: attempt.endpoint.address + path)
    }
}
