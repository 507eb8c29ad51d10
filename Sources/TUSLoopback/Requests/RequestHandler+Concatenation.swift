import Foundation
import NIOPosix

extension RequestHandler {
    /// Finds the uploads that another one is to be put together of (tus 1.0.0, "Concatenation").
    ///
    /// - Parameter concat: The value of `Upload-Concat`: `final;` and URLs, absolute or relative, with spaces between them.
    func parts(of concat: String, for exchange: Exchange) throws(Refusal) -> [String] {
        let base = URL(string: exchange.origin + Self.root)
        var parts: [String] = []
        var size: Int64 = 0
        for text in concat.dropFirst("final;".count).split(separator: " ") {
            // Whatever the host: behind a proxy the server is known by another name.
            guard let path = URL(string: String(text), relativeTo: base)?.path, path.hasPrefix(Self.root) else {
                throw Refusal(400, because: "\(text) is not the URL of an upload.")
            }
            let id = String(path.dropFirst(Self.root.count))
            switch store.lookUp(id) {
            case .unknown: throw Refusal(404, because: "There is no upload \(text).")
            case .terminated: throw Refusal(410, because: "The upload \(text) was terminated.")
            case .found(let part):
                if isExpired(part) { throw Refusal(410, because: "The upload \(text) has expired.") }
                guard part.record.isPartial else {
                    throw Refusal(400, because: "The upload \(text) was not made with Upload-Concat: partial.")
                }
                guard part.isComplete || options.offers(.concatenationUnfinished) else {
                    throw Refusal(400, because: "The upload \(text) is not complete.")
                }
                let sum = size.addingReportingOverflow(part.record.length ?? 0)
                guard !sum.overflow else { throw Refusal(413, because: "The parts have more bytes together than a file can have.") }
                size = sum.partialValue
                parts.append(id)
            }
        }
        guard !parts.isEmpty else { throw Refusal(400, because: "Upload-Concat names no parts.") }
        try checkSize(size)
        return parts
    }

    /// Puts together what an upload that was completed is a part of.
    @concurrent
    func assembleFinals(with part: Upload) async {
        guard part.record.isPartial else { return }
        for final in store.incompleteFinals(with: part) { await assemble(final) }
    }

    /// Puts an upload together if all of its parts are complete.
    @concurrent
    func assemble(_ upload: Upload) async {
        await upload.acquire(for: nil)
        defer { upload.release() }
        guard !upload.isComplete, let parts = upload.record.parts else { return }
        let found = parts.compactMap { if case .found(let part) = store.lookUp($0), part.isComplete { part } else { nil } }
        guard found.count == parts.count else { return }
        // What fails leaves the upload incomplete, and is tried again when somebody asks for it.
        try? await NIOThreadPool.singleton.runIfActive {
            try upload.concatenate(found)
            try upload.change { $0.expires = nil }
        }
        recorder.moved(upload)
    }
}
