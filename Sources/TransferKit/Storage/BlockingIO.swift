import Dispatch
import Locking
package import SystemPackage

/// Runs calls that may block, for example on a disk or a network share. The calls run outside the cooperative thread pool, whose threads must never
/// block.
package enum BlockingIO {
    /// A group of calls that share threads. If the calls of one pool hang, the other pools still have their threads.
    package enum Pool: CaseIterable {
        /// Local files of running sessions, which may be on a network share that does not respond.
        case files
        /// Local files of new sessions and items, and other files that a user or an app names.
        case requests
        /// Part files that the queue removes, checks or takes over, which may be on the same network shares.
        case partFiles
        /// Files and pipes with credentials.
        case credentials
        /// The storage folder.
        case storage

        /// The maximum number of concurrent calls of the pool, without reserve threads.
        package var limit: Int {
            switch self {
            case .files: 64
            case .requests: 32
            case .partFiles, .credentials: 16
            case .storage: 8
            }
        }

        /// The maximum number of concurrent calls with the same ``Owner``.
        package var ownerLimit: Int {
            switch self {
            case .files, .requests: 8
            case .partFiles, .credentials, .storage: limit
            }
        }

        /// The number of additional threads, for owners without a running call. These owners still get a thread each if hanging calls of other
        /// owners use all threads of the pool.
        package var reserve: Int {
            switch self {
            // All pools together have fewer than 255 threads, the maximum number of threads that dispatch starts for serial queues.
            case .files, .requests: 48
            case .partFiles, .credentials, .storage: 0
            }
        }
    }

    /// The session or folder for which a call is made. The calls of one owner usually use the same file system, so they hang together.
    package enum Owner: Hashable, Sendable {
        case session(SessionID)
        /// The folder of a new local file, or the download folder of a new session.
        case folder(FilePath)
    }

    private static let files = BlockingQueues("transferkit.files", .files)
    private static let requests = BlockingQueues("transferkit.requests", .requests)
    private static let partFiles = BlockingQueues("transferkit.partFiles", .partFiles)
    private static let credentials = BlockingQueues("transferkit.credentials", .credentials)
    private static let storage = BlockingQueues("transferkit.storage", .storage)

    /// Runs a closure on a thread that is allowed to block. Waits while all threads of the pool or of the owner are in use.
    ///
    /// - Parameter owner: The owner of the call. If the owner's calls hang, they hold at most ``Pool/ownerLimit`` threads, and other owners
    ///   still get threads. Calls without an owner form one group, to which ``Pool/ownerLimit`` does not apply.
    package static func run<Value: Sendable, Failure: Error>(
        _ pool: Pool = .requests, for owner: Owner? = nil, _ body: @escaping @Sendable () throws(Failure) -> Value
    ) async throws(Failure) -> Value {
        let queues =
            switch pool {
            case .files: files
            case .requests: requests
            case .partFiles: partFiles
            case .credentials: credentials
            case .storage: storage
            }
        let result: Result<Value, Failure> = await withCheckedContinuation { continuation in
            queues.run(for: owner) { continuation.resume(returning: Result(catching: body)) }
        }
        return try result.get()
    }
}

/// The serial dispatch queues of a pool, at most one per thread of the pool. Further closures wait for a free queue.
///
/// The queues are serial, because each serial queue immediately gets its own thread. Dispatch would run a concurrent queue on the threads
/// of the cooperative pool. That pool has only one thread for each core, and dispatch replaces blocked threads only after a second.
private final class BlockingQueues: Sendable {
    private typealias Body = @Sendable () -> Void

    private struct Calls: Sendable {
        var running = 0
        var waiting: [Body] = []
        /// The number of calls at the start of `waiting` that have started.
        var started = 0

        mutating func next() -> Body? {
            guard started < waiting.count else { return nil }
            defer { started += 1 }
            return waiting[started]
        }

        /// Removes the started calls from `waiting` once they are at least half of its elements, so that the removal takes little time per
        /// call.
        mutating func trim() {
            guard started > 0, started * 2 >= waiting.count else { return }
            waiting.removeFirst(started)
            started = 0
        }

        var isWaiting: Bool { started < waiting.count }
    }

    private struct State: Sendable {
        var idle: [DispatchQueue] = []
        var running = 0
        /// The running and waiting calls, by owner; the key nil stands for calls without an owner.
        var calls: [BlockingIO.Owner?: Calls] = [:]
        /// The owners with waiting calls, in the order of their turns.
        var turns: [BlockingIO.Owner?] = []
    }

    private let label: String
    private let pool: BlockingIO.Pool
    private let state = Locked(State())

    init(_ label: String, _ pool: BlockingIO.Pool) {
        self.label = label
        self.pool = pool
    }

    func run(for owner: BlockingIO.Owner?, _ body: @escaping @Sendable () -> Void) {
        let queue: DispatchQueue? = state.withLock { state in
            if mayStart(owner, state) {
                state.calls[owner, default: Calls()].running += 1
                state.running += 1
                return state.idle.popLast() ?? DispatchQueue(label: label)
            }
            if state.calls[owner]?.isWaiting != true { state.turns.append(owner) }
            state.calls[owner, default: Calls()].waiting.append(body)
            return nil
        }
        queue?.async { self.work(on: queue, for: owner, body) }
    }

    private func mayStart(_ owner: BlockingIO.Owner?, _ state: State) -> Bool {
        let own = state.calls[owner]?.running ?? 0
        guard owner == nil || own < pool.ownerLimit else { return false }
        return state.running < pool.limit || own == 0 && state.running < pool.limit + pool.reserve
    }

    /// Runs a closure, and then waiting closures until none may start.
    private func work(on queue: DispatchQueue?, for owner: BlockingIO.Owner?, _ body: @Sendable () -> Void) {
        body()
        var owner = owner
        while let next = next(after: owner, on: queue) {
            next.body()
            owner = next.owner
        }
    }

    /// Records the end of a call. Returns the waiting call that runs next on the same dispatch queue; nil if none may start.
    private func next(after owner: BlockingIO.Owner?, on queue: DispatchQueue?) -> (owner: BlockingIO.Owner?, body: Body)? {
        state.withLock { state in
            state.running -= 1
            state.calls[owner]?.running -= 1
            if let calls = state.calls[owner], calls.running == 0, !calls.isWaiting { state.calls[owner] = nil }
            // Only one call starts here. If this owner has no running call left, its next call comes first. With the reserve threads, that
            // call may always start, so it must not wait until a call of another owner has ended.
            let isOwnersTurn = state.calls[owner].map { $0.running == 0 && $0.isWaiting } ?? false
            let index = isOwnersTurn ? state.turns.firstIndex(of: owner) : state.turns.firstIndex { mayStart($0, state) }
            guard let index, let body = state.calls[state.turns[index]]?.next() else {
                if let queue { state.idle.append(queue) }
                return nil
            }
            let next = state.turns.remove(at: index)
            state.running += 1
            state.calls[next]?.running += 1
            state.calls[next]?.trim()
            if state.calls[next]?.isWaiting == true { state.turns.append(next) }
            return (next, body)
        }
    }
}
