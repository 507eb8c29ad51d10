import TransferControl
import TransferCore
import TransferKit
import TransferOutput

/// An error response: problem details (RFC 9457) with the code of the error, and the message that `transferq` would print.
struct Problem: Error {
    let status: Int
    /// A stable name for the reason, such as `noSuchSession`.
    let code: String
    /// A human-readable message: the reason and what to do.
    let detail: String
    var headers: [(name: String, value: String)] = []

    init(_ status: Int, _ code: String, _ detail: String) {
        self.status = status
        self.code = code
        self.detail = detail
    }

    static func invalid(_ detail: String) -> Problem { Problem(400, QueueError.Code.invalidRequest.rawValue, detail) }

    static func notFound(_ path: String) -> Problem { Problem(404, "noSuchResource", "There is no resource \(path).") }

    static func methodNotAllowed(_ allowed: [String]) -> Problem {
        var problem = Problem(405, "methodNotAllowed", "The resource allows only \(allowed.joined(separator: ", ")).")
        problem.headers = [(name: "Allow", value: allowed.joined(separator: ", "))]
        return problem
    }

    /// - Parameter isConditional: Whether the request has the header `If-Match`. If so, an error about an outdated order has the status 412
    ///   instead of 409.
    init(_ error: any Error, isConditional: Bool = false) {
        switch error {
        case let problem as Problem: self = problem
        case let error as QueueError:
            self.init(Self.status(of: error.code, isConditional: isConditional), error.code.rawValue, error.message)
        case let error as TransferError: self.init(422, error.code.rawValue, error.message)
        default: self.init(500, "internalError", "\(error)")
        }
    }

    private static func status(of code: QueueError.Code, isConditional: Bool) -> Int {
        switch code {
        case .noSuchSession, .noSuchAccount: 404
        case .staleOrder: isConditional ? 412 : 409
        case .accountInUse, .invalidTransition, .alreadyCompleted, .duplicate, .hasDependents, .impossibleOrder: 409
        case .invalidAccount, .invalidRequest, .unreadableItems, .fileExists, .indexOutOfRange: 422
        case .invalidMessage, .unknownProtocolVersion: 502
        case .ownerUnreachable, .ownerLost, .ownerSilent, .shutDown, .tooManySubscribers, .storageInUse, .storageUnavailable,
            .storageDamaged, .storageTooNew:
            503
        default: 500
        }
    }

    private var title: String {
        switch status {
        case 400: "Bad Request"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 405: "Method Not Allowed"
        case 409: "Conflict"
        case 412: "Precondition Failed"
        case 413: "Content Too Large"
        case 415: "Unsupported Media Type"
        case 421: "Misdirected Request"
        case 422: "Unprocessable Content"
        case 429: "Too Many Requests"
        case 502: "Bad Gateway"
        case 503: "Service Unavailable"
        default: "Internal Server Error"
        }
    }

    var json: JSONValue {
        [
            "type": "about:blank", "title": .string(title), "status": .integer(Int64(status)), "code": .string(code),
            "detail": .string(detail),
        ]
    }

    var response: WebResponse {
        var response = WebResponse(status, "application/problem+json", json.text + "\n")
        response.headers += headers
        return response
    }
}
