import CCurl
import Locking
import SystemPackage
import TransferCore
import TransportSupport

/// The loop that runs libcurl on its own thread. The loop executes commands, moves bytes, and waits for sockets.
///
/// The loop is created on that thread and used only there, so its properties need no lock.
@safe final class CurlLoop {
    private let multi: UnsafeMutableRawPointer
    private let mailbox: LoopMailbox
    private let configuration: CurlEngine.Configuration
    private let bodies: BodyThreads
    private var handles: EasyHandles
    private var pools = ConnectionPools()
    /// Requests beyond the maximum number of connections. They do not wait in libcurl, because libcurl wakes only one request for each freed
    /// connection, even if that request can't use the connection.
    private var waiting = PendingRequests()
    private var transfers: [PendingRequest.ID: Transfer] = [:]
    /// Transfers that libcurl has finished, but whose sinks are still writing.
    private var draining: [PendingRequest.ID: Transfer] = [:]
    private var isStopping = false

    /// The interval, in milliseconds, at which the loop checks the progress of writes. Not every write wakes the loop.
    private static let progressInterval: CInt = 50

    /// Whether libcurl is ready. The first use of this property initializes libcurl, which has no effect if other code of the process has already
    /// initialized it (curl_global_init(3)).
    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// Starts a thread with a loop on it, and returns the mailbox of the loop.
    ///
    /// - Throws: An error of the kind ``CurlEngineError/Kind/outOfResources`` if libcurl or the thread can't start.
    static func start(_ configuration: CurlEngine.Configuration, readers: ReaderThreads) throws(CurlEngineError) -> LoopMailbox {
        guard isLibraryReady, let multi = unsafe curl_multi_init() else {
            throw CurlEngineError(.outOfResources, "Cannot set up libcurl: this machine is out of memory or file descriptors.")
        }
        let mailbox = unsafe LoopMailbox(multi: multi)
        do throws(Errno) {
            try startThread { CurlLoop(mailbox, configuration, readers: readers).run() }
        } catch {
            unsafe curl_multi_cleanup(multi)
            throw CurlEngineError(.outOfResources, "Cannot create a thread for the HTTP client.", cause: "\(error)")
        }
        return mailbox
    }

    private init(_ mailbox: LoopMailbox, _ configuration: CurlEngine.Configuration, readers: ReaderThreads) {
        unsafe multi = unsafe mailbox.multi
        self.mailbox = mailbox
        self.configuration = configuration
        bodies = BodyThreads(mailbox: mailbox, readers: readers, writers: WorkerThreads(limit: configuration.writerThreads))
        handles = EasyHandles(limit: configuration.maximumConnections)
        // Limits the open connections. This limit and the next one apply to each pool separately.
        unsafe ccurl_multi_setopt_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, configuration.maximumConnections)
        // Limits the idle connections.
        unsafe ccurl_multi_setopt_long(multi, CURLMOPT_MAXCONNECTS, configuration.maximumConnections)
    }

    private func run() {
        while true {
            for command in mailbox.takeCommands() { handle(command) }
            if isStopping { break }
            startWaitingRequests()
            var running: CInt = 0
            unsafe curl_multi_perform(multi, &running)
            handleFinishedTransfers()
            let wait = waiting.isEmpty || transfers.count >= configuration.maximumConnections ? resumePacedTransfers() : 0
            var isWriting = false
            for transfer in transfers.values where transfer.consumeRejection() { resumeUpload(transfer) }
            for transfer in transfers.values where advanceDownload(transfer) {
                isWriting = isWriting || transfer.download?.isWriting == true
            }
            let longest = isWriting ? min(wait, Self.progressInterval) : wait
            unsafe curl_multi_poll(multi, nil, 0, mailbox.beginWaiting() ? longest : 0, nil)
        }
        end()
    }

    private func handle(_ command: LoopCommand) {
        switch command {
        case .start(let pending): waiting.append(pending)
        case .cancel(let id): cancel(id)
        case .uploadBufferFilled(let id, let buffer):
            guard let transfer = transfers[id] else { return }
            transfer.upload.receive(buffer)
            resumeUpload(transfer)
        case .uploadStreamGrew(let id):
            if let transfer = transfers[id] { resumeUpload(transfer) }
        case .downloadWritten(let id):
            if let transfer = transfers[id] {
                advanceDownload(transfer)
            } else if let transfer = draining[id], let code = transfer.code {
                completeWhenWritten(transfer, code)
            }
        case .stop: isStopping = true
        }
    }

    private func startWaitingRequests() {
        while transfers.count < configuration.maximumConnections, let pending = waiting.popFirst() { start(pending) }
    }

    private func start(_ pending: PendingRequest) {
        guard !pending.isCancelled.withLock({ $0 }) else { return pending.complete(.failure(CancellationError())) }
        do {
            let handle = try handles.take()
            let pool = try pools.take(ConnectionKey(pending.request.connection))
            let transfer: Transfer
            do {
                transfer = try Transfer(
                    pending, handle: handle, pool: pool, body: bodies.source(pending), download: bodies.download(pending),
                    configuration: configuration)
            } catch {
                release(handle, pool, isClean: false)
                throw error
            }
            let code = unsafe curl_multi_add_handle(multi, handle.pointer)
            guard code == CURLM_OK else {
                release(handle, pool, isClean: false)
                throw CurlEngineError(.other, "The request can't be started.", cause: unsafe String(cString: curl_multi_strerror(code)))
            }
            transfers[pending.id] = transfer
        } catch {
            pending.complete(.failure(error))
        }
    }

    private func cancel(_ id: PendingRequest.ID) {
        if let pending = waiting.remove(id) {
            pending.complete(.failure(CancellationError()))
        } else if let transfer = remove(id) ?? draining.removeValue(forKey: id) {
            complete(transfer, .failure(CancellationError()))
        }
    }

    /// Removes a transfer from libcurl. The caller must then complete it.
    private func remove(_ id: PendingRequest.ID) -> Transfer? {
        guard let transfer = transfers.removeValue(forKey: id) else { return nil }
        unsafe curl_multi_remove_handle(multi, transfer.handle.pointer)
        return transfer
    }

    private func complete(_ transfer: Transfer, _ result: Result<PendingRequest.Outcome, any Error>) {
        transfer.download?.close()
        let isSuccess = if case .success = result { true } else { false }
        release(transfer.handle, transfer.pool, isClean: isSuccess && !transfer.hasTrailers)
        transfer.pending.complete(result)
    }

    private func release(_ handle: EasyHandle, _ pool: ConnectionPool, isClean: Bool) {
        // Gives the handle back first, because the handle's reset detaches it from the pool.
        handles.giveBack(handle, isClean: isClean)
        pools.giveBack(pool)
    }

    private func resumeUpload(_ transfer: Transfer) {
        guard transfer.upload.isPaused else { return }
        transfer.upload.unpause()
        transfer.applyPauses()
    }

    private func resumeDownload(_ transfer: Transfer) {
        guard transfer.download?.isPaused == true else { return }
        transfer.download?.unpause()
        transfer.applyPauses()
    }

    /// Resumes the transfers that the rate limits paused and now allow to continue.
    ///
    /// - Returns: The number of milliseconds until the next paused transfer may resume, at most 10,000.
    private func resumePacedTransfers() -> CInt {
        var wait = Duration.seconds(10)
        let now = ContinuousClock.now
        for transfer in transfers.values {
            if let time = transfer.upload.resumesAt {
                if time <= now { resumeUpload(transfer) } else { wait = min(wait, time - now) }
            }
            if let time = transfer.download?.resumesAt {
                if time <= now { resumeDownload(transfer) } else { wait = min(wait, time - now) }
            }
        }
        return CInt((wait / .milliseconds(1)).rounded(.up))
    }

    /// Reclaims the buffers that were written, passes the received bytes to the writer, and resumes the transfer if it was waiting for a
    /// free buffer.
    ///
    /// - Returns: Whether the transfer continues; false if an error of ``DownloadState/advance(isEnd:)`` has ended the transfer.
    @discardableResult private func advanceDownload(_ transfer: Transfer, isEnd: Bool = false) -> Bool {
        do {
            let wasStarved = transfer.download?.isStarved
            try transfer.download?.advance(isEnd: isEnd)
            if wasStarved == true, transfer.download?.isStarved == false { resumeDownload(transfer) }
            return true
        } catch {
            _ = remove(transfer.pending.id) ?? draining.removeValue(forKey: transfer.pending.id)
            complete(transfer, .failure(transfer.withSent(error)))
            return false
        }
    }

    private func handleFinishedTransfers() {
        var left: CInt = 0
        while let message = unsafe curl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE else { continue }
            let code = unsafe ccurl_message_result(message)
            var context: UnsafeMutableRawPointer?
            unsafe ccurl_getinfo_pointer(message.pointee.easy_handle, CURLINFO_PRIVATE, &context)
            guard let id = unsafe Transfer.from(context)?.pending.id, let transfer = transfers.removeValue(forKey: id) else { continue }
            // If the result is a socket, duplicates it first, because removing the handle closes the original.
            let result = transfer.pending.isSocket ? transfer.result(code) : nil
            unsafe curl_multi_remove_handle(multi, transfer.handle.pointer)
            if let result { complete(transfer, result) } else { completeWhenWritten(transfer, code) }
        }
    }

    /// Completes a transfer that libcurl has finished, as soon as its sink has written all bytes.
    private func completeWhenWritten(_ transfer: Transfer, _ code: CURLcode) {
        guard advanceDownload(transfer, isEnd: true) else { return }
        guard transfer.download?.isWritten ?? true else {
            transfer.code = code
            draining[transfer.pending.id] = transfer
            return
        }
        draining[transfer.pending.id] = nil
        complete(transfer, transfer.result(code))
    }

    private func end() {
        for command in mailbox.close() {
            if case .start(let pending) = command { waiting.append(pending) }
        }
        while let pending = waiting.popFirst() { pending.complete(.failure(CurlEngineError.shutDown)) }
        for id in Array(transfers.keys) + Array(draining.keys) {
            guard let transfer = remove(id) ?? draining.removeValue(forKey: id) else { continue }
            complete(transfer, .failure(transfer.withSent(CurlEngineError.shutDown)))
        }
        handles.removeAll()
        unsafe curl_multi_cleanup(multi)
        pools.removeAll()
        mailbox.resumeEndWaiters()
    }
}
