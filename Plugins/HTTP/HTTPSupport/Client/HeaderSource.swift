package import CurlEngine
import Foundation
import Locking
import TransferCore

/// Calls an app's header hook. After a rejection, renews the credentials only once, on behalf of all requests that used them.
package final class HeaderSource: Sendable {
    private enum Work: Hashable {
        case renewal(account: String)
        case request(Int)
    }

    private struct State {
        /// The number of renewals of each account's credentials.
        var renewals: [String: Int] = [:]
        var lastRequest = 0
        /// The hook's changes to reuse.
        var changes: [File: (change: HeaderChange, renewals: Int)] = [:]
    }

    /// A file, and the endpoint and origin that its requests go to.
    private struct File: Hashable {
        var account: String
        var origin: Origin
        var session: String
        var item: Int64
    }

    private static let maximumChanges = 1_000

    /// The value of `owner` for a renewal that was skipped because another call had already renewed the credentials. Otherwise, `owner` is the number
    /// of the call that renewed the credentials. Call numbers start at 1.
    private static let noOwner = 0

    private let hook: HeaderHook
    private let reserved: ReservedHeaders
    private let reuse: HeaderReuse
    private let state = Locked(State())
    private let work = SingleFlight<Work, (owner: Int, headers: HTTPHeaders)>()

    /// - Parameters:
    ///   - reserved: The headers that the hook must not change.
    ///   - reuse: How long the headers of a file are used.
    package init(_ hook: @escaping HeaderHook, reserved: ReservedHeaders, reuse: HeaderReuse) {
        self.hook = hook
        self.reserved = reserved
        self.reuse = reuse
    }

    /// The number of renewals of an account's credentials. Read it before a request is sent.
    package func renewals(of account: String) -> Int {
        state.withLock { $0.renewals[account, default: 0] }
    }

    /// Returns the headers to send with a request.
    package func headers(for request: RequestInfo, _ headers: HTTPHeaders, account: String) async throws -> HTTPHeaders {
        let (file, renewals) = (file(of: request, account), renewals(of: account))
        if let file, let known = state.withLock({ $0.changes[file] }), known.renewals == renewals {
            return known.change.applied(to: headers)
        }
        let number = nextNumber()
        return try await work.value(for: .request(number)) {
            let changed = try await self.callHook(request, headers)
            self.keep(headers, changed, for: file, renewals)
            return (number, changed)
        }.headers
    }

    /// The file whose requests reuse the headers of this request; nil for a request that reuses none.
    private func file(of request: RequestInfo, _ account: String) -> File? {
        guard reuse == .untilRejected, !request.session.isEmpty, let origin = URL(string: request.url).flatMap(Origin.init) else {
            return nil
        }
        return File(account: account, origin: origin, session: request.session, item: request.item)
    }

    /// Keeps the hook's changes for the other requests of a file.
    ///
    /// - Parameter renewals: The number of renewals of the account's credentials before the hook was called, including a renewal by this call.
    private func keep(_ headers: HTTPHeaders, _ changed: HTTPHeaders, for file: File?, _ renewals: Int) {
        guard let file else { return }
        let change = HeaderChange(from: headers, to: changed)
        state.withLock { state in
            if state.changes.count >= Self.maximumChanges { state.changes.removeAll() }
            state.changes[file] = (change, renewals)
        }
    }

    /// Returns the headers for retrying a rejected request.
    ///
    /// - Parameter renewals: The value of ``renewals(of:)`` before the request was sent. If another request has renewed the credentials since then,
    ///   the hook is called as for a new request.
    package func headersAfterRejection(
        for request: RequestInfo, _ headers: HTTPHeaders, account: String, since renewals: Int
    ) async throws -> HTTPHeaders {
        // Repeats only if this call joined a renewal that was skipped as unnecessary.
        while self.renewals(of: account) == renewals {
            let number = nextNumber()
            let renewal = try await work.value(for: .renewal(account: account)) {
                // Another call may have renewed the credentials just before this renewal started.
                guard self.renewals(of: account) == renewals else { return (Self.noOwner, headers) }
                let original = headers
                var request = request
                request.reason = .rejected
                let headers = try await self.callHook(request, headers)
                let renewed = self.state.withLock { state in
                    state.renewals[account, default: 0] += 1
                    return state.renewals[account, default: 0]
                }
                self.keep(original, headers, for: self.file(of: request, account), renewed)
                return (number, headers)
            }
            if renewal.owner == number { return renewal.headers }
        }
        return try await self.headers(for: request, headers, account: account)
    }

    private func nextNumber() -> Int {
        state.withLock { state in
            state.lastRequest += 1
            return state.lastRequest
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

/// The headers that an app's hook added, changed or removed.
private struct HeaderChange: Sendable {
    /// The values of each changed name, in lowercase; empty for a removed name.
    private let values: [(name: String, fields: [HTTPHeaders.Field])]

    init(from before: HTTPHeaders, to after: HTTPHeaders) {
        let names = Set((Array(before) + Array(after)).map { $0.name.lowercased() })
        values = names.sorted().compactMap { name in
            guard before.values(of: name) != after.values(of: name) else { return nil }
            return (name, after.filter { $0.name.lowercased() == name })
        }
    }

    func applied(to headers: HTTPHeaders) -> HTTPHeaders {
        var headers = headers
        for (name, fields) in values {
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
