import Dispatch

/// A gate that blocks the calling threads until the test opens it.
final class ThreadGate: Sendable {
    private let entered = DispatchSemaphore(value: 0)
    private let exit = DispatchSemaphore(value: 0)

    func block() {
        entered.signal()
        exit.wait()
    }

    func waitForBlockedThreads(_ count: Int) async {
        await withCheckedContinuation { continuation in
            DispatchQueue(label: "waiting").async { [entered] in
                for _ in 0..<count { entered.wait() }
                continuation.resume()
            }
        }
    }

    func open(_ count: Int) { for _ in 0..<count { exit.signal() } }
}
