import Locking
import SystemPackage
import TransferCore
import TransportSupport

/// One request on its way to the loop.
struct TransferOrder: Sendable {
    typealias ID = UInt64

    /// What is to be had of it.
    enum Purpose: Sendable {
        case response
        case download(any HTTPResponseSink, writers: WorkerThreads?)
        case socket
    }

    /// What was had.
    enum Outcome: Sendable {
        case response(HTTPResponse)
        case socket(FileDescriptor)

        /// The response; asked of an order for one.
        var response: HTTPResponse {
            get throws(CurlEngineError) {
                guard case .response(let response) = self else { throw .wrongOutcome }
                return response
            }
        }

        /// The socket; asked of an order for one.
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
    /// Set before the cancellation is posted, which may be before the order itself is.
    let isCancelled: Locked<Bool>
    /// The lane that it is on, if it is on one.
    let lane: (lane: DownloadLane, turn: DownloadLane.Turn)?
    let outcome: Once<Outcome>

    var isDownload: Bool {
        if case .download = purpose { true } else { false }
    }

    var isSocket: Bool {
        if case .socket = purpose { true } else { false }
    }

    /// Hands the result to the caller. Called once.
    func complete(_ result: Result<Outcome, any Error>) {
        if case .stream(let stream, length: _) = request.body { stream.abandon() }
        lane?.lane.giveBack()
        outcome.resume(result)
    }
}

extension CurlEngineError {
    fileprivate static let wrongOutcome = CurlEngineError(.other, "The HTTP client mixed up what it was asked for; this is a defect.")
}
