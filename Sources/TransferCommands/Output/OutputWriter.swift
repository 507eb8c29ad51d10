import Dispatch
import Locking
import SystemPackage
import TransferCore

/// Writes results to standard output, from a thread that may wait for a slow reader.
final class OutputWriter: Sendable {
    private let descriptor: FileDescriptor
    private let queue = DispatchQueue(label: "transferq.output")
    private let isClosed = Locked(false)
    private let lastFailure = Locked<Errno?>(nil)

    /// Why something could not be written; nil if all was, or the reader went away.
    var failure: Errno? { lastFailure.withLock { $0 } }

    init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    /// Returns once the text is written. A reader that went away is no error: what follows goes nowhere.
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

    /// Writes one JSON line.
    func write(_ value: JSONValue) async {
        await write(value.text + "\n")
    }
}
