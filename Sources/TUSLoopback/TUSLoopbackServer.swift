public import Foundation
import Locking
import NIOPosix
public import SystemPackage
import TransferCore

/// A small tus 1.0.0 server on 127.0.0.1, for trying things out and for tests.
///
/// It speaks the core protocol with all extensions, any of which can be left out, and trusts everyone who can reach it. An upload is two files
/// in the folder: `<id>.bin` with the bytes so far and `<id>.json` with its length, its decoded metadata and whether it is complete. Every byte
/// that is received is kept, also of a request that was cut, and survives a restart of the server; but not those of a request with a checksum
/// that does not end with the right one. Complete uploads are given back by GET.
///
/// A HEAD, PATCH or DELETE for an upload that a PATCH is still writing ends that PATCH, which keeps what it received: a client that lost its
/// connection never has to wait for the server to notice.
///
/// HTTP is hummingbird's. Files are read and written on NIO's threads for blocking work, so that nothing here blocks the cooperative pool.
public final class TUSLoopbackServer: Sendable {
    private let folder: FilePath
    private let port: UInt16
    private let options: LoopbackOptions
    private let now: @Sendable () -> Date
    private let faults = FaultScript()
    private let recorder = StatisticsRecorder()
    private let running = Locked<RunningServer?>(nil)

    /// Makes a server that does not listen yet.
    ///
    /// - Parameters:
    ///   - folder: Where uploads are kept; made if it is missing.
    ///   - port: Where to listen; 0 for any free port.
    public convenience init(folder: FilePath, port: UInt16 = 0, options: LoopbackOptions = LoopbackOptions()) {
        self.init(folder: folder, port: port, options: options, now: { Date() })
    }

    /// Makes a server with a clock that tells when uploads expire.
    package init(
        folder: FilePath, port: UInt16 = 0, options: LoopbackOptions = LoopbackOptions(), now: @escaping @Sendable () -> Date
    ) {
        self.folder = folder
        self.port = port
        self.options = options
        self.now = now
    }

    /// Starts to listen, and returns when it does.
    ///
    /// - Returns: The URL to create uploads at, `http://127.0.0.1:port/files/`.
    /// - Throws: A ``LoopbackError`` if the folder or the port can't be used, or the server runs already.
    public func start() async throws -> URL {
        let store = try await NIOThreadPool.singleton.runIfActive { [folder] in try UploadStore(folder: folder) }
        let handler = RequestHandler(store: store, options: options, faults: faults, recorder: recorder, now: now)
        let server = try await RunningServer(port: port, handler: handler)
        let isFirst = running.withLock { running in
            guard running == nil else { return false }
            running = server
            return true
        }
        guard isFirst else {
            await server.stop()
            throw LoopbackError("The server runs already; stop it first.")
        }
        return server.url
    }

    /// Cuts all connections and returns when what they brought is stored. The server can be started again.
    public func stop() async {
        let server = running.withLock { running in
            defer { running = nil }
            return running
        }
        await server?.stop()
    }

    /// What came since the server was made.
    public var statistics: LoopbackStatistics { recorder.current }

    /// Makes something go wrong in a request to come, after what was injected earlier.
    ///
    /// - Parameter times: To how many requests it happens.
    public func inject(_ fault: LoopbackFault, times: Int = 1) {
        faults.append(fault, times: times)
    }

    /// Takes and gives no more bytes of an upload from this offset on, without a word to its client, until this is called again.
    ///
    /// Another request for a held upload ends the one that brings its bytes, and what that one still brought is not kept.
    ///
    /// - Parameter offset: At least 0; nil to go on.
    public func holdContent(at offset: Int64?) {
        faults.holdOffset.withLock { $0 = offset }
    }

    /// The files with the bytes of the uploads whose metadata has this `filename`. Empty while the server does not run.
    public func storedFiles(named filename: String) -> [FilePath] {
        running.withLock { $0 }?.store.all.filter { $0.record.metadata["filename"] == filename }.map(\.file) ?? []
    }
}
