import Foundation
import NIOPosix

extension RequestHandler {
    /// Returns the IDs of the partial uploads of a final upload (tus 1.0.0, "Concatenation").
    ///
    /// - Parameter concat: The value of `Upload-Concat`: `final;` and absolute or relative URLs, separated by spaces.
    func parts(of concat: String, for exchange: Exchange) throws(ErrorResponse) -> [String] {
        let base = URL(string: exchange.origin + Self.root)
        var parts: [String] = []
        var size: Int64 = 0
        for text in concat.dropFirst("final;".count).split(separator: " ") {
            // Ignores the host, because clients can use the name of a proxy.
            guard let path = URL(string: String(text), relativeTo: base)?.path, path.hasPrefix(Self.root) else {
                throw ErrorResponse(400, because: "\(text) is not the URL of an upload.")
            }
            let id = String(path.dropFirst(Self.root.count))
            switch store.lookUp(id) {
            case .unknown: throw ErrorResponse(404, because: "There is no upload \(text).")
            case .terminated: throw ErrorResponse(410, because: "The upload \(text) was terminated.")
            case .found(let part):
                if isExpired(part) { throw ErrorResponse(410, because: "The upload \(text) has expired.") }
                guard part.record.isPartial else {
                    throw ErrorResponse(400, because: "The upload \(text) was not created with Upload-Concat: partial.")
                }
                guard part.isComplete || options.offers(.concatenationUnfinished) else {
                    throw ErrorResponse(400, because: "The upload \(text) is not complete.")
                }
                let sum = size.addingReportingOverflow(part.record.length ?? 0)
                guard !sum.overflow else {
                    throw ErrorResponse(413, because: "The partial uploads together exceed the maximum size of a file.")
                }
                size = sum.partialValue
                parts.append(id)
            }
        }
        guard !parts.isEmpty else { throw ErrorResponse(400, because: "Upload-Concat names no partial uploads.") }
        try checkSize(size)
        return parts
    }

    /// Concatenates each final upload that contains the partial upload, if all of its partial uploads are complete.
    @concurrent
    func assembleFinals(with part: Upload) async {
        guard part.record.isPartial else { return }
        for final in store.incompleteFinals(with: part) { await assemble(final) }
    }

    /// Concatenates a final upload if all of its partial uploads are complete.
    @concurrent
    func assemble(_ upload: Upload) async {
        await upload.acquire(for: nil)
        defer { upload.release() }
        guard !upload.isComplete, let parts = upload.record.parts else { return }
        let found = parts.compactMap { if case .found(let part) = store.lookUp($0), part.isComplete { part } else { nil } }
        guard found.count == parts.count else { return }
        // After a failure, the upload stays incomplete. The next request for the upload retries the concatenation.
        try? await NIOThreadPool.singleton.runIfActive {
            try upload.concatenate(found)
            try upload.change { $0.expires = nil }
        }
        recorder.updated(upload)
    }
}
