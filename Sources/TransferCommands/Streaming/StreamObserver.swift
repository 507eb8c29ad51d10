import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

/// Reports on the terminal why a stream waits. Otherwise, the user would see only that the producer of the stream waits too.
struct StreamObserver: Sendable {
    private static let interval = Duration.seconds(1)
    /// The minimum free space, in bytes, that the storage folder needs for the next bytes of a stream.
    private static let minimumFreeSpace: Int64 = 1 << 20

    let queue: any ControllableQueue
    let session: SessionID
    /// The queue's storage folder.
    let folder: FilePath
    /// Whether to report that the session is held. False if the user requested the hold.
    let reportsHold: Bool

    /// Reports each new reason until the task is cancelled.
    func run() async {
        let terminal = CommandContext.current.terminal
        var shown: String?
        while (try? await Task.sleep(for: Self.interval)) != nil {
            // The command reports the loss of the queue's owner.
            guard let status = try? await queue.status(of: session) else { continue }
            let reason = await reason(status)
            if let reason, reason != shown { terminal.post("transferq: Waiting. \(reason)".withoutControlCharacters) }
            shown = reason ?? shown
        }
    }

    /// The reason why the stream makes no progress; nil if there is none. Omits times, so that a retry does not count as a new reason.
    private func reason(_ status: SessionStatus) async -> String? {
        switch (status.state, status.why) {
        case (.waiting, .retry?): status.error?.description
        case (.waiting, .endpointsUnavailable(_, let error)?): (error ?? status.error)?.description
        case (.waiting, let why?): why.description
        case (.running, _):
            await isDiskFull ? "The disk with the storage folder \(folder) is full. Free some space; the stream then continues." : nil
        case (.paused, _): "The session is paused. To resume it: transferq resume \(SessionDescription.shortID(session))"
        case (.held, _) where reportsHold: "The session is held. To release it: transferq release \(SessionDescription.shortID(session))"
        default: nil
        }
    }

    private var isDiskFull: Bool {
        get async {
            let free = await BlockingIO.run { [folder] in DiskSpace.free(at: folder) }
            return free.map { $0 < Self.minimumFreeSpace } ?? false
        }
    }
}
