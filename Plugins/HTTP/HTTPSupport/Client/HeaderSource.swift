package import CurlEngine
import Locking
import TransferCore

/// Asks an app's header hook, and sees to it that rejected credentials are renewed once for all who were rejected with them.
package final class HeaderSource: Sendable {
    private enum Work: Hashable {
        case renewal(account: String)
        case request(Int)
    }

    private struct State {
        /// How often the credentials of an account were renewed.
        var renewals: [String: Int] = [:]
        var lastRequest = 0
    }

    /// The owner of a renewal that was not needed; requests are counted from 1.
    private static let nobody = 0

    private let hook: HeaderHook
    private let reserved: ReservedHeaders
    private let state = Locked(State())
    private let work = SingleFlight<Work, (owner: Int, headers: HTTPHeaders)>()

    /// - Parameter reserved: What the hook may not change.
    package init(_ hook: @escaping HeaderHook, reserved: ReservedHeaders) {
        self.hook = hook
        self.reserved = reserved
    }

    /// How often the credentials of an account were renewed so far: to be taken before a request is sent.
    package func renewals(of account: String) -> Int {
        state.withLock { $0.renewals[account, default: 0] }
    }

    /// The headers that a request is to be sent with.
    package func headers(for request: RequestInfo, _ headers: HTTPHeaders) async throws -> HTTPHeaders {
        let number = nextNumber()
        return try await work.value(for: .request(number)) { (number, try await self.ask(request, headers)) }.headers
    }

    /// The headers to send a rejected request with once more.
    ///
    /// - Parameter renewals: What ``renewals(of:)`` was before the request was sent. If the credentials were renewed since, by another request,
    ///   the hook is asked as for a new request.
    package func headersAfterRejection(
        for request: RequestInfo, _ headers: HTTPHeaders, account: String, since renewals: Int
    ) async throws -> HTTPHeaders {
        // Again when the renewal that was joined found that it was for another one's rejection, and did nothing.
        while self.renewals(of: account) == renewals {
            let number = nextNumber()
            let renewal = try await work.value(for: .renewal(account: account)) {
                // A renewal may have ended between the look at it and the start of this one.
                guard self.renewals(of: account) == renewals else { return (Self.nobody, headers) }
                var request = request
                request.reason = .rejected
                let headers = try await self.ask(request, headers)
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

    private func ask(_ request: RequestInfo, _ headers: HTTPHeaders) async throws -> HTTPHeaders {
        let changed: HTTPHeaders
        do {
            changed = try await hook(request, headers)
        } catch let error as TransferError {
            throw error
        } catch is CancellationError {
            throw CancellationError()
        } catch {
            throw TransferError(
                .transient, .credentialsUnavailable, "The app's hook for headers failed before a \(request.method) request.",
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
