import Dispatch
import Locking
import SystemPackage
import TransferCore
import TransferOutput

/// Writes results to standard output on a dispatch queue, because a slow reader can block writes.
final class OutputWriter: Sendable {
    private let descriptor: FileDescriptor
    private let queue = DispatchQueue(label: "transferq.output")
    private let isClosed = Locked(false)
    private let lastFailure = Locked<Errno?>(nil)

    /// The error of a failed write; nil if all writes succeeded or the reader closed the pipe.
    var failure: Errno? { lastFailure.withLock { $0 } }

    init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    /// The number of columns of the terminal that shows the output; nil if the output is not a terminal.
    var columns: Int? { Terminal.size(of: descriptor)?.columns }

    /// Writes text and returns when it is written. After an error, or if the reader closed the pipe, writes no more text.
    func write(_ text: String) async {
        await withCheckedContinuation { (continuation: CheckedContinuation<Void, Never>) in
            queue.async { [self] in
                defer { continuation.resume() }
                guard !isClosed.withLock({ $0 }) else { return }
                do {
                    try descriptor.writeAll(text.utf8)
                } catch {
                    isClosed.withLock { $0 = true }
                    if let code = error as? Errno, code != .brokenPipe { lastFailure.withLock { $0 = code } }
                }
            }
        }
    }

    func write(_ value: JSONValue) async {
        await write(value.text + "\n")
    }
}
