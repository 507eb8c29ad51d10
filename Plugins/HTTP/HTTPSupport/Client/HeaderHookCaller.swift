package import CurlEngine
import Foundation
import Locking
import TransferCore

/// Calls an app's header hook. After a rejection, renews the credentials only once, on behalf of all requests that used them.
package final class HeaderHookCaller: Sendable {
    private enum Work: Hashable {
        case renewal(endpointAddress: String)
        case request(Int)
    }

    private struct State {
        /// The number of times that the credentials of each endpoint were renewed, by the endpoint's address.
        var renewals: [String: Int] = [:]
        var lastCallNumber = 0
        /// The hook's changes for each file, which later requests reuse. A change is reused only while its `renewals` equals the endpoint's
        /// renewal count.
        var changes: [FileKey: (change: HeaderChange, renewals: Int)] = [:]
    }

    /// Identifies the requests for one file to one origin, at one endpoint.
    private struct FileKey: Hashable {
        var endpointAddress: String
        var origin: Origin
        var session: String
        var item: Int64
    }

    private static let maximumChanges = 1_000

    /// The result of a task: the number of the call that started it, and the headers from the hook.
    private typealias HookResult = (callNumber: Int, headers: HTTPHeaders)

    /// The call number in the result of a renewal that did not call the hook, because the credentials had just been renewed. Call numbers
    /// start at 1.
    private static let noCallNumber = 0

    private let hook: HeaderHook
    private let reserved: ReservedHeaders
    private let reuse: HeaderReuse
    private let state = Locked(State())
    private let work = SingleFlight<Work, HookResult>()

    /// - Parameters:
    ///   - reserved: The headers that the hook must not change.
    ///   - reuse: When the transport reuses the headers that the hook returned for a file.
    package init(_ hook: @escaping HeaderHook, reserved: ReservedHeaders, reuse: HeaderReuse) {
        self.hook = hook
        self.reserved = reserved
        self.reuse = reuse
    }

    /// Returns the number of times that the credentials of an endpoint were renewed. Call this before a request is sent, and pass the
    /// result to ``headersAfterRejection(for:_:at:since:)`` if the request is rejected.
    package func renewals(at endpointAddress: String) -> Int {
        state.withLock { $0.renewals[endpointAddress, default: 0] }
    }

    /// Returns the headers to send with a request.
    ///
    /// - Throws: A `TransferError` or `CancellationError` of the hook; a transient `TransferError` for any other error of the hook; or a
    ///   `TransferError` with the code `invalidHeader` if the hook changed a reserved header.
    package func headers(for request: RequestInfo, _ headers: HTTPHeaders, at endpointAddress: String) async throws -> HTTPHeaders {
        let (file, renewals) = (file(of: request, endpointAddress), renewals(at: endpointAddress))
        if let file, let known = state.withLock({ $0.changes[file] }), known.renewals == renewals {
            return known.change.applied(to: headers)
        }
        let number = nextCallNumber()
        return try await work.value(for: .request(number)) {
            let changed = try await self.callHook(request, headers)
            self.storeChanges(from: headers, to: changed, for: file, renewals: renewals)
            return (number, changed)
        }.headers
    }

    /// Returns the file whose requests share the hook's changes with this request; nil if no other request shares the changes.
    private func file(of request: RequestInfo, _ endpointAddress: String) -> FileKey? {
        guard reuse == .untilRejected, !request.session.isEmpty, let origin = URL(string: request.url).flatMap(Origin.init) else {
            return nil
        }
        return FileKey(endpointAddress: endpointAddress, origin: origin, session: request.session, item: request.item)
    }

    /// Stores the hook's changes for the other requests of a file.
    ///
    /// - Parameter renewals: The endpoint's renewal count for these headers: the count before the hook was called, plus 1 if this call
    ///   renewed the credentials.
    private func storeChanges(from headers: HTTPHeaders, to changed: HTTPHeaders, for file: FileKey?, renewals: Int) {
        guard let file else { return }
        let change = HeaderChange(from: headers, to: changed)
        state.withLock { state in
            if state.changes.count >= Self.maximumChanges { state.changes.removeAll() }
            state.changes[file] = (change, renewals)
        }
    }

    /// Returns the headers with which to repeat a rejected request.
    ///
    /// - Parameter renewals: The value of ``renewals(at:)`` before the request was sent. If another request has renewed the credentials
    ///   since then, this method returns the same headers as for a new request.
    /// - Throws: The same errors as ``headers(for:_:at:)``.
    package func headersAfterRejection(
        for request: RequestInfo, _ headers: HTTPHeaders, at endpointAddress: String, since renewals: Int
    ) async throws -> HTTPHeaders {
        // Usually runs once. The loop repeats if this call joined an older call's task, and that task skipped the renewal.
        while self.renewals(at: endpointAddress) == renewals {
            let number = nextCallNumber()
            let renewal = try await work.value(for: .renewal(endpointAddress: endpointAddress)) {
                // Another call may have renewed the credentials just before this task started.
                guard self.renewals(at: endpointAddress) == renewals else { return (Self.noCallNumber, headers) }
                let original = headers
                var request = request
                request.reason = .rejected
                let headers = try await self.callHook(request, headers)
                let renewed = self.state.withLock { state in
                    state.renewals[endpointAddress, default: 0] += 1
                    return state.renewals[endpointAddress, default: 0]
                }
                self.storeChanges(from: original, to: headers, for: self.file(of: request, endpointAddress), renewals: renewed)
                return (number, headers)
            }
            if renewal.callNumber == number { return renewal.headers }
        }
        return try await self.headers(for: request, headers, at: endpointAddress)
    }

    private func nextCallNumber() -> Int {
        state.withLock { state in
            state.lastCallNumber += 1
            return state.lastCallNumber
        }
    }

    private func callHook(_ request: RequestInfo, _ headers: HTTPHeaders) async throws -> HTTPHeaders {
        let changed: HTTPHeaders
        do {
            changed = try await hook(request, headers)
        } catch let error as TransferError {
            throw error
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            throw TransferError(
                .transient, .credentialsUnavailable, "The app's header hook failed before a \(request.method) request.",
                cause: "\(error)")
        }
        for name in Set((Array(headers) + Array(changed)).map { $0.name.lowercased() }) where reserved.contains(name) {
            guard headers.values(of: name) == changed.values(of: name) else {
                throw reserved.changedByHook(name)
            }
        }
        return changed
    }
}

private struct HeaderChange: Sendable {
    /// The changed names, in lower case, and the fields that the hook returned for them; no fields for a removed name.
    private let changes: [(name: String, fields: [HTTPHeaders.Field])]

    init(from before: HTTPHeaders, to after: HTTPHeaders) {
        let names = Set((Array(before) + Array(after)).map { $0.name.lowercased() })
        changes = names.sorted().compactMap { name in
            guard before.values(of: name) != after.values(of: name) else { return nil }
            return (name, after.filter { $0.name.lowercased() == name })
        }
    }

    func applied(to headers: HTTPHeaders) -> HTTPHeaders {
        var headers = headers
        for (name, fields) in changes {
            headers[name] = nil
            for field in fields { headers.append(field.name, field.value) }
        }
        return headers
    }
}

extension HTTPHeaders {
    fileprivate func values(of name: String) -> [String] {
        filter { $0.name.lowercased() == name }.map(\.value)
    }
}
