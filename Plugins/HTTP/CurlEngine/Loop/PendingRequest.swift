import Locking
import SystemPackage
import TransferCore
import TransportSupport

/// One request on its way to the loop.
struct PendingRequest: Sendable {
    typealias ID = UInt64

    /// The result that the caller wants.
    enum Purpose: Sendable {
        case response
        case download(any HTTPResponseSink, writers: WorkerThreads?)
        case socket
    }

    /// The result.
    enum Outcome: Sendable {
        case response(HTTPResponse)
        case socket(FileDescriptor)

        /// The response, for a request that wants one.
        var response: HTTPResponse {
            get throws(CurlEngineError) {
                guard case .response(let response) = self else { throw .wrongOutcome }
                return response
            }
        }

        /// The socket, for a request that wants one.
        var socket: FileDescriptor {
            get throws(CurlEngineError) {
                guard case .socket(let socket) = self else { throw .wrongOutcome }
                return socket
            }
        }
    }

    let id: ID
    let request: HTTPRequest
    let purpose: Purpose
    let pacing: (@Sendable (Int) -> Allowance)?
    let progress: (@Sendable (Int64) -> Void)?
    /// Set before the cancellation is posted, possibly before the request itself is.
    let isCancelled: Locked<Bool>
    /// The lane that carries the request; nil for the shared loop.
    let lane: (lane: DownloadLane, turn: DownloadLane.Turn)?
    let outcome: Once<Outcome>

    var isDownload: Bool {
        if case .download = purpose { true } else { false }
    }

    var isSocket: Bool {
        if case .socket = purpose { true } else { false }
    }

    /// Passes the result to the caller. Called once.
    func complete(_ result: Result<Outcome, any Error>) {
        if case .stream(let stream, length: _) = request.body { stream.abandon() }
        lane?.lane.giveBack()
        outcome.resume(result)
    }
}

extension CurlEngineError {
    fileprivate static let wrongOutcome = CurlEngineError(
        .other, "The HTTP client returned a result of the wrong kind. This is a bug in TransferKit.")
}
