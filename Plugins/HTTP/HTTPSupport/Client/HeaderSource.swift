package import CurlEngine
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
    }

    /// The value of `owner` for a renewal that was skipped because another call had already renewed the credentials. Otherwise, `owner` is the number
    /// of the call that renewed the credentials. Call numbers start at 1.
    private static let noOwner = 0

    private let hook: HeaderHook
    private let reserved: ReservedHeaders
    private let state = Locked(State())
    private let work = SingleFlight<Work, (owner: Int, headers: HTTPHeaders)>()

    /// - Parameter reserved: The headers that the hook must not change.
    package init(_ hook: @escaping HeaderHook, reserved: ReservedHeaders) {
        self.hook = hook
        self.reserved = reserved
    }

    /// The number of renewals of an account's credentials. Read it before a request is sent.
    package func renewals(of account: String) -> Int {
        state.withLock { $0.renewals[account, default: 0] }
    }

    /// Returns the headers to send with a request.
    package func headers(for request: RequestInfo, _ headers: HTTPHeaders) async throws -> HTTPHeaders {
        let number = nextNumber()
        return try await work.value(for: .request(number)) { (number, try await self.callHook(request, headers)) }.headers
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
                var request = request
                request.reason = .rejected
                let headers = try await self.callHook(request, headers)
                self.state.withLock { $0.renewals[account, default: 0] += 1 }
                return (number, headers)
            }
            if renewal.owner == number { return renewal.headers }
        }
        return try await self.headers(for: request, headers)
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

extension HTTPHeaders {
    fileprivate func values(of name: String) -> [String] {
        filter { $0.name.lowercased() == name }.map(\.value)
    }
}
