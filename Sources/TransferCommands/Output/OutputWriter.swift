import Dispatch
import SystemPackage
import TransferCore

/// Writes results to standard output, from a thread that may wait for a slow reader.
final class OutputWriter: Sendable {
    private let descriptor: FileDescriptor
    private let queue = DispatchQueue(label: "transferq.output")
    private let isClosed = Locked(false)

    init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    /// Returns once the text is written. A reader that went away is no error: what follows goes nowhere.
    func write(_ text: String) async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                if !isClosed.withLock({ $0 }), (try? descriptor.writeAll(text.utf8)) == nil {
                    isClosed.withLock { $0 = true }
                }
                continuation.resume()
            }
        }
    }

    /// Writes one JSON line.
    func write(_ value: JSONValue) async {
        await write(value.text + "\n")
    }
}
