import CCurl
import SystemPackage
import TransferCore
import TransportSupport

/// The thread that owns libcurl: takes commands, moves bytes, waits for sockets, again and again.
///
/// Made on its thread and never leaves it, so nothing here needs a lock.
@safe final class CurlLoop {
    private let multi: UnsafeMutableRawPointer
    private let mailbox: LoopMailbox
    private let configuration: CurlEngine.Configuration
    private let readers: WorkerThreads
    private var transfers: [TransferOrder.ID: Transfer] = [:]
    private var isStopping = false

    /// libcurl's one-time set-up for the process; repeated calls do nothing (curl_global_init(3)).
    private static let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    /// Starts a thread with a loop on it.
    static func start(_ configuration: CurlEngine.Configuration) throws(CurlEngineError) -> LoopMailbox {
        guard isLibraryReady, let multi = unsafe curl_multi_init() else {
            throw CurlEngineError(.outOfResources, "libcurl can't be set up: this machine is out of memory or descriptors.")
        }
        let mailbox = unsafe LoopMailbox(multi: multi)
        do throws(Errno) {
            try startThread { CurlLoop(mailbox, configuration).run() }
        } catch {
            unsafe curl_multi_cleanup(multi)
            throw CurlEngineError(.outOfResources, "No thread can be made for the HTTP client.", cause: "\(error)")
        }
        return mailbox
    }

    private init(_ mailbox: LoopMailbox, _ configuration: CurlEngine.Configuration) {
        unsafe multi = unsafe mailbox.multi
        self.mailbox = mailbox
        self.configuration = configuration
        readers = WorkerThreads(limit: configuration.readerThreads)
        unsafe ccurl_multi_setopt_long(multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, configuration.maximumConnections)
        // How many idle ones are kept.
        unsafe ccurl_multi_setopt_long(multi, CURLMOPT_MAXCONNECTS, configuration.maximumConnections)
    }

    private func run() {
        while true {
            for command in mailbox.takeCommands() { handle(command) }
            if isStopping { break }
            var running: CInt = 0
            unsafe curl_multi_perform(multi, &running)
            finishDone()
            unsafe curl_multi_poll(multi, nil, 0, resumePaced(), nil)
        }
        end()
    }

    private func handle(_ command: LoopCommand) {
        switch command {
        case .start(let order): start(order)
        case .cancel(let id): remove(id)?.fail(CancellationError())
        case .bodyRead(let id, let chunk):
            guard let transfer = transfers[id] else { return }
            transfer.upload.receive(chunk)
            resume(transfer)
        case .stop: isStopping = true
        }
    }

    private func start(_ order: TransferOrder) {
        guard !order.isCancelled.withLock({ $0 }) else { return order.continuation.resume(throwing: CancellationError()) }
        do {
            let transfer = try Transfer(order, body: bodySource(order), configuration: configuration)
            let code = unsafe curl_multi_add_handle(multi, transfer.easy)
            guard code == CURLM_OK else {
                throw CurlEngineError(.other, "The request can't be started.", cause: unsafe String(cString: curl_multi_strerror(code)))
            }
            transfers[order.id] = transfer
        } catch {
            order.continuation.resume(throwing: error)
        }
    }

    private func bodySource(_ order: TransferOrder) -> BodySource {
        switch order.request.body {
        case .none: return .none
        case .bytes(let bytes): return .bytes(bytes, position: 0)
        case .file(let file, let offset, let length):
            let body = FileBody(file, offset: offset, length: length) { [readers, mailbox] chunk throws(TransferError) in
                try readers.submit { mailbox.post(.bodyRead(order.id, FileBody.fill(chunk, from: file))) }
            }
            return .file(body)
        }
    }

    /// Takes a transfer out of libcurl; the caller then ends it.
    private func remove(_ id: TransferOrder.ID) -> Transfer? {
        guard let transfer = transfers.removeValue(forKey: id) else { return nil }
        unsafe curl_multi_remove_handle(multi, transfer.easy)
        return transfer
    }

    private func resume(_ transfer: Transfer) {
        guard transfer.upload.isPaused else { return }
        transfer.upload.unpause()
        unsafe curl_easy_pause(transfer.easy, CURLPAUSE_CONT)
    }

    /// Lets those transfers go on whose rate limits are to be asked again.
    ///
    /// - Returns: When the next of them is due, in milliseconds from now; a long time if there is none.
    private func resumePaced() -> CInt {
        var wait = Duration.seconds(10)
        let now = ContinuousClock.now
        for transfer in transfers.values {
            guard let time = transfer.upload.resumesAt else { continue }
            if time <= now { resume(transfer) } else { wait = min(wait, time - now) }
        }
        return CInt((wait / .milliseconds(1)).rounded(.up))
    }

    private func finishDone() {
        var left: CInt = 0
        while let message = unsafe curl_multi_info_read(multi, &left) {
            guard unsafe message.pointee.msg == CURLMSG_DONE else { continue }
            let code = unsafe ccurl_message_result(message)
            var context: UnsafeMutableRawPointer?
            unsafe ccurl_getinfo_pointer(message.pointee.easy_handle, CURLINFO_PRIVATE, &context)
            guard let id = unsafe Transfer.from(context)?.id else { continue }
            remove(id)?.finish(code)
        }
    }

    private func end() {
        for command in mailbox.close() {
            if case .start(let order) = command { order.continuation.resume(throwing: CurlEngineError.shutDown) }
        }
        for id in transfers.keys { remove(id)?.fail(CurlEngineError.shutDown) }
        unsafe curl_multi_cleanup(multi)
        mailbox.tellClosed()
    }
}
