public import Foundation
import Locking
import NIOPosix
public import SystemPackage
import TransferCore

#if !LoopbackServer && !Web
    #error("The loopback server needs a trait. Add to your dependency on this package: traits: [\"LoopbackServer\"]")
#endif

/// A small server for resumable uploads on 127.0.0.1, for experiments and tests. The server supports tus 1.0.0, or a version of the IETF's
/// *Resumable Uploads for HTTP* (``LoopbackOptions/dialect``).
///
/// With tus, the server supports the core protocol and all extensions. With the IETF protocol, the server supports interim responses, limits,
/// digests and problem types. See ``LoopbackOptions``. The server does not authenticate clients. Clients can download complete uploads with GET.
///
/// An upload consists of two files in the folder: `<id>.bin` with the received bytes, and `<id>.json` with its properties, such as the
/// length and the decoded metadata. The server keeps received bytes, even after a broken connection or a restart of the server. The
/// exception is a request with a checksum: the server removes the request's bytes, unless the whole body arrives and matches
/// the checksum.
///
/// A HEAD, PATCH or DELETE for an upload ends a request that is still writing to the upload. A client that lost its connection therefore
/// need not wait until the server notices the loss.
///
/// The server uses the HTTP implementation of Hummingbird. The server accesses files on NIO's thread pool for blocking work, so the
/// cooperative thread pool never blocks.
public final class TUSLoopbackServer: Sendable {
    private let folder: FilePath
    private let port: UInt16
    private let options: LoopbackOptions
    private let now: @Sendable () -> Date
    private let faults = FaultScript()
    private let recorder = StatisticsRecorder()
    private let running = Locked<RunningServer?>(nil)
    /// Whether the server uses the folder: from the call of ``start()`` until ``stop()`` has ended. If the server started twice, the second
    /// start would remove the bytes of uploads whose checksum is not verified yet.
    private let isStarted = Locked(false)

    /// Creates a server without starting it.
    ///
    /// - Parameters:
    ///   - folder: The folder for uploads, created if it is missing.
    ///   - port: The port to listen on; 0 for any free port.
    ///   - options: The features and limits of the server.
    public convenience init(folder: FilePath, port: UInt16 = 0, options: LoopbackOptions = LoopbackOptions()) {
        self.init(folder: folder, port: port, options: options, now: { Date() })
    }

    /// Creates a server with a custom clock for the expiry of uploads.
    package init(
        folder: FilePath, port: UInt16 = 0, options: LoopbackOptions = LoopbackOptions(), now: @escaping @Sendable () -> Date
    ) {
        self.folder = folder
        self.port = port
        self.options = options
        self.now = now
    }

    /// Starts the server and returns when it is listening.
    ///
    /// - Returns: The URL for creating uploads, `http://127.0.0.1:port/files/`.
    /// - Throws: A ``LoopbackError`` if the folder or the port can't be used, or the server is already running.
    public func start() async throws -> URL {
        let wasStarted = isStarted.withLock { isStarted in
            defer { isStarted = true }
            return isStarted
        }
        guard !wasStarted else { throw LoopbackError("The server is already running. Stop it first.") }
        do {
            let store = try await NIOThreadPool.singleton.runIfActive { [folder] in try UploadStore(folder: folder) }
            let handler = RequestHandler(store: store, options: options, faults: faults, recorder: recorder, now: now)
            let server = try await RunningServer(port: port, handler: handler)
            running.withLock { $0 = server }
            return server.url
        } catch {
            isStarted.withLock { $0 = false }
            throw error
        }
    }

    /// Cuts all connections and returns when the received bytes are stored. The server can be started again.
    public func stop() async {
        let server = running.withLock { running in
            defer { running = nil }
            return running
        }
        guard let server else { return }
        await server.stop()
        isStarted.withLock { $0 = false }
    }

    /// The requests since the server was created.
    public var statistics: LoopbackStatistics { recorder.current }

    /// Adds a fault for later requests, after all faults added earlier.
    ///
    /// - Parameters:
    ///   - fault: The fault.
    ///   - times: The number of requests that the fault affects.
    public func inject(_ fault: LoopbackFault, times: Int = 1) {
        faults.append(fault, times: times)
    }

    /// Stops uploads and downloads at an offset, without notifying clients. The transfers continue after a call with a higher offset or nil.
    ///
    /// A HEAD, PATCH or DELETE for a stopped upload ends the request that sends the content. The server does not store bytes of that
    /// request after the offset.
    ///
    /// - Parameter offset: The offset in bytes, at least 0; nil to continue.
    public func stopContent(at offset: Int64?) {
        faults.stopOffset.withLock { $0 = offset }
    }

    /// The stored files of uploads, complete or not, with this `filename` in their metadata. Empty while the server is not running.
    public func storedFiles(named filename: String) -> [FilePath] {
        running.withLock { $0 }?.store.all.filter { $0.record.metadata["filename"] == filename }.map(\.file) ?? []
    }
}
