import Locking
import TransferCore
import TransportSupport

/// Methods that send requests.
///
/// Methods that wait for a response throw a ``StatusFailure`` for an error status, and a `TransferError` for a response of an unexpected
/// type. Methods that return an ``SFTPResponse`` return such responses instead. All of these methods throw the `TransferError` that ended
/// the session. If the task is cancelled during the wait, they throw `CancellationError` immediately; the server may still execute the
/// request.
extension SFTPClient {
    package func features() async throws -> SFTPFeatures {
        let once = SingleResult<SFTPFeatures>()
        whenReady { once.resume($0.mapError { $0 }) }
        return try await once.valueUnlessCancelled()
    }

    /// Sends a request without waiting for its response. The client sends requests in the order of the calls.
    func begin(_ request: Request) -> PendingResponse {
        let once = SingleResult<SFTPResponse>()
        let sent = Locked(false)
        let id = submit(request, onHandover: { sent.withLock { $0 = true } }) { [weak self] result in
            let isAwaited = once.resume(result.mapError { $0 })
            // A cancelled task never gets the handle, so close it here.
            if !isAwaited, case .success(.handle(let handle)) = result { self?.close(handle) }
        }
        return PendingResponse(client: self, id: id, once: once, sent: sent, isAboutPath: request.namesPath)
    }

    package func response(to request: Request) async throws -> SFTPResponse {
        try await begin(request).response()
    }

    /// Throws a ``StatusFailure`` if the status is not `OK`.
    package func perform(_ request: Request) async throws {
        try await begin(request).success()
    }

    /// Opens a file or a folder.
    package func open(_ request: Request) async throws -> Handle {
        try await begin(request).handle()
    }

    package func attributes(_ request: Request) async throws -> FileAttributes {
        try await begin(request).attributes()
    }

    /// Requests a file's attributes without following links; returns nil if the file does not exist.
    package func attributesIfPresent(_ path: [UInt8]) async throws -> FileAttributes? {
        do {
            return try await attributes(.lstat(path))
        } catch let failure as StatusFailure where failure.status.code.meansMissing {
            return nil
        }
    }

    /// Removes a file. Succeeds if the file does not exist.
    func removeIfPresent(_ path: [UInt8]) async throws {
        do {
            try await perform(.remove(path))
        } catch let failure as StatusFailure where failure.status.code.meansMissing {
            // The file does not exist.
        }
    }

    /// Returns the free space of an open file's file system; nil if the server can't report it.
    package func space(at handle: Handle, _ path: [UInt8]) async throws -> FileSystemSpace? {
        let features = try await features()
        // Try the path first, because the handle may already be closed.
        let requests = (features.offers(.statvfs) ? [Request.statvfs(path)] : []) + (features.offers(.fstatvfs) ? [.fstatvfs(handle)] : [])
        for request in requests {
            if case .extended(let data) = try await response(to: request), let space = try? FileSystemSpace(data) { return space }
        }
        return nil
    }

    package func close(_ handle: Handle) {
        submit(.close(handle)) { _ in }
    }

    var unexpectedResponseError: TransferError {
        TransferError(.protocolViolation, .invalidResponse, "\(serverName) sent an unexpected type of response.")
    }
}

/// A sent request whose response a task can await.
struct PendingResponse: Sendable {
    let client: SFTPClient
    fileprivate let id: UInt32
    fileprivate let once: SingleResult<SFTPResponse>
    fileprivate let sent: Locked<Bool>
    fileprivate let isAboutPath: Bool

    /// Whether the mover (see ``SFTPClient``) has fetched the request's packet. If so, the server may have executed the request.
    var isSent: Bool { sent.withLock { $0 } }

    /// Waits for the response, which can have any type. Call only one of the waiting methods (`response()`, `success()`, `handle()` or
    /// `attributes()`), and only once.
    func response() async throws -> SFTPResponse {
        try await once.valueUnlessCancelled { [client, id] in client.forget(id) }
    }

    /// Makes the wait for the response fail with a `CancellationError`.
    func abandon() {
        if once.resume(.failure(CancellationError())) { client.forget(id) }
    }

    /// Like ``abandon()``, for a request that opens a file or folder: also closes the handle, even if the response has already arrived.
    func abandonOpening() {
        if once.resume(.failure(CancellationError())) { return client.forget(id) }
        Task { if case .handle(let handle)? = try? await once.value() { client.close(handle) } }
    }

    /// Waits for the status. Throws a ``StatusFailure`` if it is not `OK`.
    func success() async throws {
        guard case .status(let status) = try await response() else { throw client.unexpectedResponseError }
        guard status.code == .ok else { throw StatusFailure(status, isAboutPath: isAboutPath) }
    }

    func handle() async throws -> Handle {
        switch try await response() {
        case .handle(let handle): return handle
        case .status(let status) where status.code != .ok: throw StatusFailure(status, isAboutPath: isAboutPath)
        default: throw client.unexpectedResponseError
        }
    }

    func attributes() async throws -> FileAttributes {
        switch try await response() {
        case .attributes(let attributes): return attributes
        case .status(let status) where status.code != .ok: throw StatusFailure(status, isAboutPath: isAboutPath)
        default: throw client.unexpectedResponseError
        }
    }
}

/// The error for a request that the server rejected.
package struct StatusFailure: Error, Hashable, Sendable {
    package var status: Status
    /// Whether the request named a path, rather than the handle of an open file or folder.
    package var isAboutPath: Bool

    package init(_ status: Status, isAboutPath: Bool = false) {
        self.status = status
        self.isAboutPath = isAboutPath
    }
}

extension Status.Code {
    /// Whether the file or folder does not exist.
    package var meansMissing: Bool { self == .noSuchFile || self == .noSuchPath }

    /// Whether a rename may have failed because the new name is taken. Version 3 of the protocol has no separate status for this cause.
    package var mayMeanExisting: Bool { self == .failure || self == .fileExists || self == .permissionDenied }
}
