import Foundation
import NIOPosix

extension RequestHandler {
    /// Returns the IDs of the partial uploads of a final upload (tus 1.0.0, "Concatenation").
    ///
    /// - Parameter concat: The value of `Upload-Concat`: `final;` and absolute or relative URLs, separated by spaces.
    func partialIDs(in concat: String, for exchange: Exchange) throws(ErrorResponse) -> [String] {
        let base = URL(string: exchange.origin + Self.root)
        var partialIDs: [String] = []
        var size: Int64 = 0
        for text in concat.dropFirst("final;".count).split(separator: " ") {
            // Ignore the host, because a client that connects through a proxy uses the name of the proxy.
            guard let path = URL(string: String(text), relativeTo: base)?.path, path.hasPrefix(Self.root) else {
                throw ErrorResponse(400, because: "\(text) is not the URL of an upload.")
            }
            let id = String(path.dropFirst(Self.root.count))
            switch store.lookUp(id) {
            case .unknown: throw ErrorResponse(404, because: "There is no upload \(text).")
            case .terminated: throw ErrorResponse(410, because: "The upload \(text) was terminated.")
            case .found(let partial):
                if isExpired(partial) { throw ErrorResponse(410, because: "The upload \(text) has expired.") }
                guard partial.record.isPartial else {
                    throw ErrorResponse(400, because: "The upload \(text) was not created with Upload-Concat: partial.")
                }
                guard partial.isComplete || options.offers(.concatenationUnfinished) else {
                    throw ErrorResponse(400, because: "The upload \(text) is not complete.")
                }
                let sum = size.addingReportingOverflow(partial.record.length ?? 0)
                guard !sum.overflow else {
                    throw ErrorResponse(413, because: "The partial uploads together exceed the maximum size of a file.")
                }
                size = sum.partialValue
                partialIDs.append(id)
            }
        }
        guard !partialIDs.isEmpty else { throw ErrorResponse(400, because: "Upload-Concat names no partial uploads.") }
        try checkSize(size)
        return partialIDs
    }

    /// Assembles the final uploads to which this partial upload belongs. Skips a final upload if one of its partial uploads is incomplete.
    @concurrent
    func assembleFinals(with partial: Upload) async {
        guard partial.record.isPartial else { return }
        for final in store.incompleteFinals(with: partial) { await assemble(final) }
    }

    @concurrent
    func assemble(_ upload: Upload) async {
        await upload.acquire(for: nil)
        defer { upload.release() }
        guard !upload.isComplete, let partialIDs = upload.record.parts else { return }
        let found = partialIDs.compactMap { if case .found(let partial) = store.lookUp($0), partial.isComplete { partial } else { nil } }
        guard found.count == partialIDs.count else { return }
        // After a failure, the upload stays incomplete. The next request for the upload tries again to assemble it.
        try? await NIOThreadPool.singleton.runIfActive {
            try upload.concatenate(found)
            try upload.change { $0.expires = nil }
        }
        recorder.updated(upload)
    }
}
