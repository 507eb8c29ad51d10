import CurlEngine
import Foundation
import HTTPSupport
import TransferCore
import TransportSupport

/// Sends a file in parts at once, each an upload of its own, and has the server put them together (tus 1.0.0, "Concatenation").
struct Concatenation {
    let server: TUSServer
    let features: ServerFeatures
    let record: UploadRecord
    let metadata: UploadMetadata
    let size: Int64
    /// Makes what sends one part.
    let sender: @Sendable (_ slot: UploadRecord.Slot, _ range: Range<Int64>, _ url: String) -> ContentSender

    /// Begins with so many parts, or fewer if there are not as many bytes.
    static func plan(_ count: Int, of size: Int64) -> TUSCheckpoint {
        let partSize = parts(of: Int64(count), in: size)
        var checkpoint = TUSCheckpoint()
        checkpoint.partSize = partSize
        checkpoint.parts = Array(repeating: RemoteUpload(), count: Int(parts(of: partSize, in: size)))
        return checkpoint
    }

    /// How many parts of a size it takes for so many bytes.
    private static func parts(of partSize: Int64, in size: Int64) -> Int64 { size / partSize + (size % partSize > 0 ? 1 : 0) }

    /// Brings all parts there, from where each of them stands, and has them put together.
    ///
    /// - Returns: Which parts are still there.
    func run() async throws -> PartsLeft {
        let ranges = try await ranges()
        if let url = await record[.whole].url, try await isComplete(url) { return try await removeParts() }
        let begun = await record.checkpoint
        if features.offers(.concatenationUnfinished), await record[.whole].url == nil {
            try await forEachPart(ranges) { try await create($0, $1) }
            try await createFinal(isEarly: true)
        }
        let checkpoint = await record.checkpoint
        // Once the whole was asked for, parts that were confirmed may be gone.
        if checkpoint.whole.url == nil || checkpoint.confirmed < size {
            try await forEachPart(ranges) { slot, range in
                if begun[slot].url == nil { try await begin(slot, range) } else { try await goOn(slot, range) }
            }
        }
        if await record[.whole].url == nil { try await createFinal() }
        guard let url = await record[.whole].url, try await isComplete(url) else {
            throw TransferError(
                .transient, .serverError, "The server \(server.origin) has all parts of the file, and has not put them together yet.")
        }
        return try await removeParts()
    }

    private func ranges() async throws(TransferError) -> [Range<Int64>] {
        let checkpoint = await record.checkpoint
        guard let parts = checkpoint.parts, let partSize = checkpoint.partSize, partSize > 0,
            Int64(parts.count) == Self.parts(of: partSize, in: size)
        else {
            throw TransferError(.resumeLost, .uploadGone, "What was kept of the file's parts does not fit its size of \(size) bytes.")
        }
        return stride(from: 0, to: size, by: Int64.Stride(partSize)).map { $0..<$0 + min(partSize, size - $0) }
    }

    /// Does something with all parts at once.
    ///
    /// A failure that may pass does not stop the other parts, as what they still bring need not be sent again; any other one does.
    private func forEachPart(
        _ ranges: [Range<Int64>], _ body: @escaping @Sendable (UploadRecord.Slot, Range<Int64>) async throws -> Void
    ) async throws {
        let failure = try await withThrowingTaskGroup(of: TransferError?.self) { group in
            for (number, range) in ranges.enumerated() {
                group.addTask {
                    do {
                        try await body(.part(number), range)
                        return nil
                    } catch let error as TransferError where error.failureClass == .transient && error.retryAfter == nil {
                        return error
                    }
                }
            }
            return try await group.reduce(nil) { $0 ?? $1 }
        }
        if let failure { throw failure }
    }

    private func create(_ slot: UploadRecord.Slot, _ range: Range<Int64>) async throws {
        guard await record[slot].url == nil else { return }
        var headers: HTTPHeaders = [server.dialect.lengthHeader: "\(range.count)"]
        headers[server.dialect.concatenationHeader] = "partial"
        let answer = try await server.requestCreation(metadata, headers: headers)
        try await record.confirm(0, of: slot, expires: answer.expires, url: try await server.created(answer))
    }

    private func goOn(_ slot: UploadRecord.Slot, _ range: Range<Int64>) async throws {
        guard let url = await record[slot].url else { return try await begin(slot, range) }
        // Where the whole was asked for by their names, no part can be made anew: the server may have removed them because it has the whole.
        let checkpoint = await record.checkpoint
        let isReplaceable = checkpoint.whole.url == nil && checkpoint.asksForWhole != true
        do {
            let (isRemoved, standing) =
                isReplaceable ? try await server.removeIfDoubtful(checkpoint[slot], length: Int64(range.count)) : (false, nil)
            guard isRemoved else {
                var sender = sender(slot, range, url)
                return try await sender.resume(from: standing)
            }
            try await record.save { $0[slot] = RemoteUpload() }
        } catch let error as TransferError where error.failureClass == .resumeLost && isReplaceable {
            // The other parts are not to suffer for this one.
            try await record.save { $0[slot] = RemoteUpload() }
            if let busy = await server.removeIfAllowed([url]) { throw busy }
        }
        try await begin(slot, range)
    }

    private func begin(_ slot: UploadRecord.Slot, _ range: Range<Int64>) async throws {
        try await create(slot, range)
        guard let url = await record[slot].url else { return }
        var sender = sender(slot, range, url)
        try await sender.send(from: 0)
    }

    /// Has the parts put together. Not asked for a second time before the parts were found complete by `HEAD`: if the answer is lost, the next
    /// attempt begins with that.
    ///
    /// - Parameter isEarly: Whether parts are still to come. A server may say that it takes that, and not mean it: then it is asked behind them.
    private func createFinal(isEarly: Bool = false) async throws {
        let parts = await record.checkpoint.parts ?? []
        let addresses = parts.compactMap(\.url).map(address(ofPart:))
        try await record.save { $0.asksForWhole = true }
        var headers = HTTPHeaders()
        headers[server.dialect.concatenationHeader] = "final;\(addresses.joined(separator: " "))"
        let answer = try await server.requestCreation(metadata, headers: headers)
        if answer.status == 404 || answer.status == 410 {
            let cause = "POST was answered with \(answer.status)"
            guard try await hasAllParts() else {
                throw TransferError(
                    .resumeLost, .uploadGone, "The server \(server.origin) no longer has all parts of the file.", cause: cause)
            }
            throw TransferError(
                .permanent, .rejected, "The server \(server.origin) has all parts of the file, and does not put them together.",
                cause: cause)
        }
        guard answer.isSuccess else {
            // A server that refuses has made nothing.
            if (400..<500).contains(answer.status) { try await record.save { $0.asksForWhole = nil } }
            if isEarly, answer.status == 400 { return }
            throw try await server.refused(answer)
        }
        let url = try await server.created(answer)
        try await record.save { $0.whole.url = url }
    }

    private func hasAllParts() async throws -> Bool {
        do {
            for url in await record.checkpoint.parts?.compactMap(\.url) ?? [] { _ = try await server.offset(of: url, length: nil) }
            return true
        } catch let error as TransferError where error.failureClass == .resumeLost {
            return false
        }
    }

    /// As the server gave it, without the origin if that is the endpoint's: servers behind a proxy may know themselves by another name.
    private func address(ofPart url: String) -> String {
        guard let components = URLComponents(string: url), components.url.flatMap(Origin.init) == server.origin else { return url }
        return components.percentEncodedPath + (components.percentEncodedQuery.map { "?\($0)" } ?? "")
    }

    /// Asks whether the server has all of the file; while parts are missing, it does not say how much (tus 1.0.0, "Upload-Concat").
    private func isComplete(_ url: String) async throws -> Bool {
        try await server.finalOffset(of: url, length: size) == size
    }

    /// The parts take room until they expire; the file does not need them.
    private func removeParts() async throws -> PartsLeft {
        var left = PartsLeft(urls: await record.checkpoint.parts?.compactMap(\.url) ?? [])
        try await withThrowingTaskGroup(of: (url: String, failure: TransferError?).self) { group in
            for url in left.urls {
                group.addTask {
                    do {
                        try await server.delete(url)
                        return (url, nil)
                    } catch let error as TransferError {
                        return (url, error)
                    }
                }
            }
            while let (url, failure) = try await group.next() {
                left.note(failure, of: url)
                if let failure, failure.wantsPeace { break }
            }
            group.cancelAll()
        }
        return left
    }
}

/// The parts of an upload that are still there though the whole is complete.
struct PartsLeft {
    /// Those that may be removed later.
    private(set) var urls: [String]
    /// Why the first of them was not removed; nil where the server lets them expire, by its own word.
    private var reason: TransferError?

    init(urls: [String]) {
        self.urls = urls
    }

    mutating func note(_ failure: TransferError?, of url: String) {
        if failure == nil || failure?.failureClass == .unsupported { urls.removeAll { $0 == url } }
        if reason == nil, let failure, failure.code != .unsupported { reason = failure }
    }

    /// For the queue, which removes them by and by.
    var leftovers: Checkpoint? {
        get throws { urls.isEmpty ? nil : try TUSCheckpoint(leftovers: urls).encoded(atMost: 0) }
    }

    func warning(_ origin: Origin) -> String? {
        reason.map { "Parts of the file were left at the server \(origin)\(urls.isEmpty ? "" : ", to be removed later"): \($0)" }
    }
}
