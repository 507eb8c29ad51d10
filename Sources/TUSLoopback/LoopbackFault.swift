import Locking
import TransferCore

/// A simulated fault of the server in one request; see ``TUSLoopbackServer/inject(_:times:)``.
public enum LoopbackFault: Hashable, Sendable {
    /// Receives the given number of bytes of a request's body, and closes the connection without a response. The server keeps the received
    /// bytes, unless the request has a checksum.
    ///
    /// Applies to the first POST, PATCH or (IETF) PUT whose body has at least the given number of bytes. If the body has exactly that
    /// number of bytes, the whole body has arrived, but the server sends no response and (IETF) does not complete the upload.
    case cut(afterBodyBytes: Int64)

    /// Closes the connection without a response after a request has completed an upload. Applies to the first request that completes an
    /// upload with the IETF protocol.
    case loseFinalResponse

    /// Sends the given number of bytes of content, and closes the connection. Applies to the first GET whose response has at least that number of
    /// bytes.
    case cutDownload(afterBytes: Int64)

    /// Responds with the given status (200 to 599) and headers, and does nothing else with the request or its body. A nil `method` matches
    /// any method.
    case answer(status: Int, headers: [String: String] = [:], method: String? = nil)
}

/// The pending faults in the order of injection.
final class FaultScript: Sendable {
    private let faults = Locked<[LoopbackFault]>([])

    /// The offset, in bytes, at which uploads and downloads stop; nil to let them continue.
    let stopOffset = Locked<Int64?>(nil)

    /// Returns the number of bytes after an offset that may be transferred now, at least 1.
    ///
    /// If transfers must stop at this offset, waits until they may continue. Returns nil if the request is interrupted or the connection
    /// closes during the wait.
    func transferableBytes(from offset: Int64, on connection: Connection) async -> Int64? {
        while let stop = stopOffset.withLock({ $0 }) {
            if offset < stop { return stop - offset }
            if connection.isInterrupted || !connection.isOpen { return nil }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return .max
    }

    func append(_ fault: LoopbackFault, times: Int) {
        faults.withLock { $0.append(contentsOf: repeatElement(fault, count: times)) }
    }

    func takeResponse(for method: String) -> Response? {
        faults.withLock { faults in
            for (index, fault) in faults.enumerated() {
                if case .answer(let status, let headers, let wanted) = fault, wanted == nil || wanted == method {
                    faults.remove(at: index)
                    return Response(status, headers.map { ($0.key, $0.value) })
                }
            }
            return nil
        }
    }

    /// The number of body bytes after which the first pending cut closes a connection; nil if no cut is pending.
    var nextCut: Int64? {
        faults.withLock { faults in
            for case .cut(let bytes) in faults { return bytes }
            return nil
        }
    }

    /// Removes the cut that ``nextCut`` returned. Returns false if another request has already removed the cut.
    func takeCut(afterBodyBytes bytes: Int64) -> Bool {
        faults.withLock { faults in
            guard let index = faults.firstIndex(of: .cut(afterBodyBytes: bytes)) else { return false }
            faults.remove(at: index)
            return true
        }
    }

    func takeLostResponse() -> Bool {
        faults.withLock { faults in
            guard let index = faults.firstIndex(of: .loseFinalResponse) else { return false }
            faults.remove(at: index)
            return true
        }
    }

    /// Removes the first pending cut that applies to a response of this size. Returns the number of bytes to send before the cut; nil if no cut
    /// applies.
    func takeDownloadCut(of size: Int64) -> Int64? {
        faults.withLock { faults in
            for (index, fault) in faults.enumerated() {
                if case .cutDownload(let bytes) = fault, bytes <= size {
                    faults.remove(at: index)
                    return bytes
                }
            }
            return nil
        }
    }
}
