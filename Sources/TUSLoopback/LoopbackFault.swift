import Locking
import TransferCore

/// Something that goes wrong on purpose, once; see ``TUSLoopbackServer/inject(_:times:)``.
public enum LoopbackFault: Hashable, Sendable {
    /// Takes this many bytes of a request's body, keeps them, and closes the connection without an answer.
    ///
    /// Consumed by the first POST or PATCH for an upload whose body has that many bytes. With the exact length of the body, everything is kept
    /// and only the answer is lost.
    case cut(afterBodyBytes: Int64)

    /// Gives back this many bytes of content, and closes the connection. Consumed by the first GET that has that many to give.
    case cutDownload(afterBytes: Int64)

    /// Answers a request, of this method or any, with a status from 200 to 599 and headers instead of treating it. Its body is not taken.
    case answer(status: Int, headers: [String: String] = [:], method: String? = nil)
}

/// The faults that are still to happen, in the order in which they were injected.
final class FaultScript: Sendable {
    private let faults = Locked<[LoopbackFault]>([])

    /// The offset that no content goes past for now, in either direction; nil for none.
    let holdOffset = Locked<Int64?>(nil)

    /// How many bytes may pass from an offset on before they are held, at least 1; waits while there are none. Nil if the connection is to end.
    func room(from offset: Int64, on connection: Connection) async -> Int64? {
        while let held = holdOffset.withLock({ $0 }) {
            if offset < held { return held - offset }
            if connection.isInterrupted || !connection.isOpen { return nil }
            try? await Task.sleep(for: .milliseconds(10))
        }
        return .max
    }

    func append(_ fault: LoopbackFault, times: Int) {
        faults.withLock { $0.append(contentsOf: repeatElement(fault, count: times)) }
    }

    /// Takes the answer that is due for a request of this method.
    func takeAnswer(for method: String) -> Response? {
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

    /// After how many bytes of body the next cut comes.
    var nextCut: Int64? {
        faults.withLock { faults in
            for case .cut(let bytes) in faults { return bytes }
            return nil
        }
    }

    /// Removes the cut that ``nextCut`` told; false if another request has had it.
    func takeCut(afterBodyBytes bytes: Int64) -> Bool {
        faults.withLock { faults in
            guard let index = faults.firstIndex(of: .cut(afterBodyBytes: bytes)) else { return false }
            faults.remove(at: index)
            return true
        }
    }

    /// Takes the cut that is due for an answer with so much content: after how many bytes it comes.
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
