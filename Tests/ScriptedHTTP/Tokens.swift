package import CurlEngine
import Locking
import TransferCore

/// A header hook that adds numbered tokens, a new one after each rejection.
package final class Tokens: Sendable {
    private let state = Locked<(number: Int, asked: [RequestInfo])>((0, []))

    package var asked: [RequestInfo] { state.withLock { $0.asked } }
    package var renewals: Int { asked.count { $0.reason == .rejected } }

    package init() {}

    package var hook: HeaderHook {
        { request, headers in
            let number = self.state.withLock { state in
                state.asked.append(request)
                if request.reason == .rejected { state.number += 1 }
                return state.number
            }
            var headers = headers
            headers["Authorization"] = "Bearer token-\(number)"
            return headers
        }
    }
}
