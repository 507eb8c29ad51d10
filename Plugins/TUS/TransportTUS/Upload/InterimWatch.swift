import CurlEngine
import Foundation
import HTTPSupport
import Locking
import TransferCore

/// The interim responses (104) about an upload resource that arrive while a request is running. Combines their content in one report.
final class InterimWatch: Sendable {
    /// The content of interim responses.
    struct Report: Sendable {
        /// The URL of the upload resource.
        var location: URL?
        /// Whether a later response contained another URL.
        var changesLocation = false
        /// The number of bytes that the server has.
        var offset: Int64?
        var limits: UploadLimits?
        /// The version of the interim responses, if it differs from the request's version. Other fields of such responses are ignored.
        var otherVersion: Dialect?
    }

    /// Yields after each change of the report. At most one change is buffered.
    let changes: AsyncStream<Void>
    private let continuation: AsyncStream<Void>.Continuation
    private let report = Locked(Report())
    private let dialect: Dialect

    init(_ dialect: Dialect) {
        self.dialect = dialect
        (changes, continuation) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Adds an interim response. Called on the HTTP client's thread.
    ///
    /// - Parameter url: The URL of the request, against which the URL of the upload resource is resolved.
    func add(_ head: HTTPResponseHead, to url: String) {
        guard head.status == IETFTerms.interimStatus, let terms = dialect.ietf else { return }
        let version = head.headers[Dialect.interopHeader]
        guard version.map({ $0 == dialect.version }) ?? (dialect.versionHeader == nil) else {
            let other = version == nil ? Dialect.final : Dialect.draft(namedIn: head.headers)
            report.withLock { $0.otherVersion = other }
            continuation.yield()
            return
        }
        let location = head.headers["Location"].flatMap { URL(string: $0, relativeTo: URL(string: url))?.absoluteURL }
        let offset = head.headers[dialect.offsetHeader].flatMap { text -> Int64? in
            guard case .integer(let number)? = StructuredFields.item(text), number >= 0 else { return nil }
            return number
        }
        let limits = terms.limits(in: head.headers)
        report.withLock { report in
            if let location, Origin(location) != nil {
                report.changesLocation = report.changesLocation || report.location.map { !$0.isSameResource(as: location) } ?? false
                report.location = report.location ?? location
            }
            if let offset { report.offset = max(report.offset ?? 0, offset) }
            if limits != nil { report.limits = limits }
        }
        continuation.yield()
    }

    /// The combined content of all interim responses.
    var current: Report { report.withLock { $0 } }

    func end() { continuation.finish() }
}

extension TUSServer {
    /// Sends a request, and processes interim responses while the request runs. All interim responses are processed before this method returns or
    /// throws, even if the connection broke or the task was cancelled.
    ///
    /// - Parameters:
    ///   - process: Processes the combined content of all interim responses so far. An error ends the request.
    ///   - send: Sends the request with the given observer.
    /// - Throws: The error of `process`, otherwise the error of `send`.
    func observingInterims(
        _ process: @escaping @Sendable (InterimWatch.Report) async throws -> Void,
        send: @escaping @Sendable (@escaping @Sendable (HTTPResponseHead, String) -> Void) async throws -> TUSResponse
    ) async throws -> TUSResponse {
        let watch = InterimWatch(dialect)
        let sending = Task {
            defer { watch.end() }
            return try await send { watch.add($0, to: $1) }
        }
        let processing = Task {
            do {
                for await _ in watch.changes { try await process(watch.current) }
            } catch {
                sending.cancel()
                throw error
            }
        }
        let result = await withTaskCancellationHandler {
            await sending.result
        } onCancel: {
            sending.cancel()
        }
        try await processing.value
        return try result.get()
    }
}

extension URL {
    /// Whether two absolute URLs identify the same resource. Origins are not case-sensitive.
    func isSameResource(as other: URL) -> Bool {
        Origin(self) == Origin(other) && path(percentEncoded: true) == other.path(percentEncoded: true)
            && query(percentEncoded: true) == other.query(percentEncoded: true)
    }
}
