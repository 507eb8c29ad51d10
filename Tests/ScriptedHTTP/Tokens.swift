package import CurlEngine
import Locking
import TransferCore

/// A header hook that adds a numbered token to each request, and increments the number after each rejection.
package final class Tokens: Sendable {
    private let state = Locked<(number: Int, requests: [RequestInfo])>((0, []))

    package var requests: [RequestInfo] { state.withLock { $0.requests } }
    package var renewals: Int { requests.count { $0.reason == .rejected } }

    package init() {}

    package var hook: HeaderHook {
        { request, headers in
            let number = self.state.withLock { state in
                state.requests.append(request)
                if request.reason == .rejected { state.number += 1 }
                return state.number
            }
            var headers = headers
            headers["Authorization"] = "Bearer token-\(number)"
            return headers
        }
    }
}
