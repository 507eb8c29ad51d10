import Locking
import SystemPackage
import TransferCore
import TransportSupport

/// A request that was passed to a loop, and the object that receives its result.
struct PendingRequest: Sendable {
    typealias ID = UInt64

    enum Purpose: Sendable {
        case response
        case download(any HTTPResponseSink, writers: WorkerThreads?)
        case socket
    }

    enum Outcome: Sendable {
        case response(HTTPResponse)
        case socket(FileDescriptor)

        var response: HTTPResponse {
            get throws(CurlEngineError) {
                guard case .response(let response) = self else { throw .wrongOutcome }
                return response
            }
        }

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
    /// Whether the request was cancelled. The command that cancels the request can reach the loop before the command that starts it.
    let isCancelled: Locked<Bool>
    /// The ``DedicatedLoop`` that runs the request, and the request's reservation of it; nil if the shared loop runs the request.
    let reservedLoop: (loop: DedicatedLoop, reservation: DedicatedLoop.Reservation)?
    let outcome: SingleResult<Outcome>

    var isDownload: Bool {
        if case .download = purpose { true } else { false }
    }

    var isSocket: Bool {
        if case .socket = purpose { true } else { false }
    }

    /// Passes the result to the caller. Before that, ends the request's body stream and releases the reserved loop. Called once.
    func complete(_ result: Result<Outcome, any Error>) {
        if case .stream(let stream, length: _) = request.body { stream.abandon() }
        reservedLoop?.loop.release()
        outcome.resume(result)
    }
}

extension CurlEngineError {
    fileprivate static let wrongOutcome = CurlEngineError(
        .other, "The HTTP client returned a result of the wrong kind. This is a bug in TransferKit.")
}
