import Logging
import TransferCore
import TransportSupport

/// The connections to all endpoints. The files of an endpoint share its connections.
///
/// The pool opens more connections when the existing ones are busy. It opens the first connection alone, because an error such as rejected
/// credentials would affect all connections. It opens additional connections a few at a time, because a server may limit concurrent
/// logins (`MaxStartups`, sshd_config(5)).
actor SSHConnectionPool {
    private struct Member {
        let number: Int
        let link: any SFTPLink
        var connection: PooledConnection
        var files = 0
        /// Closes the connection after it has been idle for ``PoolPolicy/idleTime``.
        var idleTimer: Task<Void, Never>?

        /// A sort key for the expected delay of a request. Busy connections sort last.
        var load: (Int, Int) { (isBusy ? 1 : 0, files) }

        /// Whether small files would have to wait, because servers usually process the requests of a connection in order.
        var isBusy: Bool { connection.client.contentInFlight >= SSHConnectionPool.busyBytes }

        func isSilent(for limit: Duration, _ policy: PoolPolicy) -> Bool {
            connection.client.unansweredSince.map { policy.now() - $0 >= limit } ?? false
        }
    }

    /// Small files stay far below this number of bytes.
    private static let busyBytes = 128 << 10

    private struct Group {
        var members: [Member] = []
        /// Connections whose server does not respond. They get no more files, and close when their current files are done.
        var silent: [Member] = []
        var openings: [Int: Task<Void, Never>] = [:]
        /// Tasks that wait for a new connection, or for a connection without files.
        var waiters: [SingleResult<Void>] = []
        /// The time until which the pool does not try to open an additional connection.
        var pausedUntil: ContinuousClock.Instant?

        /// Returns whether to open another connection now.
        ///
        /// - Parameter isForUnused: Whether the caller requests a connection without files.
        func needsAnother(forUnused isForUnused: Bool, _ policy: PoolPolicy) -> Bool {
            guard !members.isEmpty else { return openings.isEmpty }
            guard mayOpen(policy) else { return false }
            // Each waiting task gets one of the connections that are being opened. If none is left for this task, it needs another one.
            if isForUnused { return openings.count <= waiters.count }
            let files = members.reduce(0) { $0 + ($1.isBusy ? max($1.files, policy.filesPerConnection) : $1.files) }
            return members.allSatisfy { $0.isBusy || $0.files >= policy.filesPerConnection }
                && files >= policy.filesPerConnection * (members.count + openings.count)
        }

        func mayOpen(_ policy: PoolPolicy) -> Bool {
            openings.count < policy.maximumOpenings && pausedUntil.map { $0 <= policy.now() } ?? true
        }
    }

    private let connector: any SFTPConnector
    private let policy: PoolPolicy
    private var groups: [Endpoint: Group] = [:]
    private var lastNumber = 0
    private var isShutDown = false

    init(_ connector: any SFTPConnector, policy: PoolPolicy = PoolPolicy()) {
        self.connector = connector
        self.policy = policy
    }

    /// Runs a closure with a connection to an endpoint. Other files can use the connection at the same time.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of connections to the endpoint.
    ///   - prefersUnused: Whether to wait for a connection without files, if the pool can open one.
    ///   - waiting: Called at the start of a wait for a connection, and then at each ``PoolPolicy/activityInterval``. Must not block.
    /// - Throws: The error for a connection that can't be opened, `CancellationError`, or the error of the closure.
    nonisolated func use<Result: Sendable>(
        _ endpoint: Endpoint, atMost limit: Int, preferringUnused prefersUnused: Bool = false, credentials: any CredentialProvider,
        logger: Logger, waiting: @escaping @Sendable () -> Void = {}, _ body: (PooledConnection) async throws -> Result
    ) async throws -> Result {
        let (number, connection) = try await acquire(endpoint, limit, prefersUnused, credentials, logger, waiting)
        do {
            let result = try await body(connection)
            await release(number, of: endpoint)
            return result
        } catch {
            await release(number, of: endpoint, wasCancelled: Task.isCancelled)
            throw error
        }
    }

    private func acquire(
        _ endpoint: Endpoint, _ limit: Int, _ prefersUnused: Bool, _ credentials: any CredentialProvider, _ logger: Logger,
        _ waiting: @escaping @Sendable () -> Void
    ) async throws -> (Int, PooledConnection) {
        var hasWaited = false
        while true {
            try Task.checkCancellation()
            guard !isShutDown else { throw Self.shutDownError }
            removeUnusable(of: endpoint)
            var group = groups[endpoint] ?? Group()
            let index = group.members.indices.min { group.members[$0].load < group.members[$1].load }
            let isUsed = index.map { group.members[$0].files > 0 } ?? true
            if group.needsAnother(forUnused: prefersUnused && isUsed, policy), group.members.count + group.openings.count < max(1, limit) {
                beginOpening(of: endpoint, &group, credentials, logger)
            }
            // Waiting for a new connection takes a small file about as long as using a busy one.
            let mustWait = prefersUnused ? isUsed : !hasWaited && index.map { group.members[$0].isBusy } ?? true
            if let index, !mustWait || group.openings.isEmpty {
                group.members[index].files += 1
                group.members[index].idleTimer?.cancel()
                group.members[index].idleTimer = nil
                let member = group.members[index]
                group.members[index].connection.isNew = false
                groups[endpoint] = group
                return (member.number, member.connection)
            }
            let arrival = SingleResult<Void>()
            group.waiters.append(arrival)
            groups[endpoint] = group
            let reminder = Task { [policy] in
                while true {
                    waiting()
                    try await policy.sleep(policy.activityInterval)
                    if index != nil, !prefersUnused { arrival.resume(.success(())) }
                }
            }
            defer {
                reminder.cancel()
                hasWaited = true
            }
            do {
                try await arrival.valueUnlessCancelled()
            } catch  where (index != nil || groups[endpoint]?.openings.isEmpty == false) && !(error is CancellationError) {
                // Other connections exist or are being opened, so try again.
                continue
            }
        }
    }

    /// Starts to open connections for `count` tasks that will each request a connection without files. Returns before they are open.
    ///
    /// - Parameter limit: The maximum number of connections to the endpoint.
    func prepare(
        _ count: Int, to endpoint: Endpoint, atMost limit: Int, credentials: any CredentialProvider, logger: Logger
    ) {
        guard !isShutDown, var group = groups[endpoint] else { return }
        while group.members.count(where: { $0.files == 0 }) + group.openings.count < count, group.mayOpen(policy),
            group.members.count + group.openings.count < limit
        {
            beginOpening(of: endpoint, &group, credentials, logger)
        }
        groups[endpoint] = group
    }

    private func beginOpening(of endpoint: Endpoint, _ group: inout Group, _ credentials: any CredentialProvider, _ logger: Logger) {
        lastNumber += 1
        let number = lastNumber
        group.openings[number] = Task { await self.open(number, endpoint, credentials, logger) }
    }

    private func open(_ number: Int, _ endpoint: Endpoint, _ credentials: any CredentialProvider, _ logger: Logger) async {
        let result: Result<any SFTPLink, any Error>
        do { result = .success(try await connect(endpoint, credentials, logger)) } catch { result = .failure(error) }
        if isShutDown, case .success(let link) = result { await link.close() }
        var group = groups[endpoint] ?? Group()
        let waiters = group.waiters
        group.waiters = []
        group.openings[number] = nil
        switch result {
        case .success(let link) where !isShutDown:
            let connection = PooledConnection(
                client: link.client, checksums: RemoteChecksums(link.commands), hostKeyFingerprint: link.hostKeyFingerprint)
            group.members.append(Member(number: number, link: link, connection: connection))
            group.pausedUntil = nil
            groups[endpoint] = group
            // Starts the idle timer now. If all waiting tasks were cancelled, only this timer closes the unused connection.
            startIdleTimer(for: number, of: endpoint)
            for waiter in waiters { waiter.resume(.success(())) }
        case .success:
            for waiter in waiters { waiter.resume(.failure(Self.shutDownError)) }
        case .failure(let error):
            group.pausedUntil = policy.now() + policy.delayAfterFailure
            groups[endpoint] = group
            for waiter in waiters { waiter.resume(.failure(error)) }
        }
    }

    private nonisolated func connect(
        _ endpoint: Endpoint, _ credentials: any CredentialProvider, _ logger: Logger
    ) async throws -> any SFTPLink {
        let late = TransferError(
            .unreachable, .timedOut, "No connection to \(endpoint.address) was established within \(policy.connectTimeout).")
        let link = try await policy.within(policy.connectTimeout, orThrow: late, onLateResult: { await $0.close() }) { [connector] in
            try await connector.connect(to: endpoint, credentials: credentials, logger: logger)
        }
        do {
            let client = link.client
            let noResponse = TransferError(
                .unreachable, .timedOut,
                "\(client.serverName) accepted the login, but did not start SFTP within \(policy.startTimeout). "
                    + "A startup file of the account's shell may hang.")
            _ = try await policy.within(policy.startTimeout, orThrow: noResponse) { try await client.features() }
        } catch {
            await link.close()
            throw error
        }
        return link
    }

    /// - Parameter wasCancelled: Whether the task was cancelled, for example because the attempt stalled.
    private func release(_ number: Int, of endpoint: Endpoint, wasCancelled: Bool = false) {
        if let index = groups[endpoint]?.silent.firstIndex(where: { $0.number == number }) {
            groups[endpoint]?.silent[index].files -= 1
            guard groups[endpoint]?.silent[index].files == 0, let member = groups[endpoint]?.silent.remove(at: index) else { return }
            giveUp(member)
            return
        }
        guard let index = groups[endpoint]?.members.firstIndex(where: { $0.number == number }) else { return }
        groups[endpoint]?.members[index].files -= 1
        if wasCancelled, let member = groups[endpoint]?.members[index], member.isSilent(for: policy.silenceAfterCancellation, policy) {
            groups[endpoint]?.members.remove(at: index)
            return retire(member, of: endpoint)
        }
        guard groups[endpoint]?.members[index].files == 0 else { return }
        startIdleTimer(for: number, of: endpoint)
        let waiters = groups[endpoint]?.waiters ?? []
        groups[endpoint]?.waiters = []
        for waiter in waiters { waiter.resume(.success(())) }
    }

    private func startIdleTimer(for number: Int, of endpoint: Endpoint) {
        guard let index = groups[endpoint]?.members.firstIndex(where: { $0.number == number }) else { return }
        let idleTimer = Task { [weak self, policy] in
            guard (try? await policy.sleep(policy.idleTime)) != nil else { return }
            await self?.closeIfIdle(number, of: endpoint)
        }
        groups[endpoint]?.members[index].idleTimer = idleTimer
    }

    private func closeIfIdle(_ number: Int, of endpoint: Endpoint) async {
        guard let index = groups[endpoint]?.members.firstIndex(where: { $0.number == number }),
            let member = groups[endpoint]?.members[index], member.files == 0
        else { return }
        groups[endpoint]?.members.remove(at: index)
        if let group = groups[endpoint], group.members.isEmpty, group.silent.isEmpty, group.openings.isEmpty { groups[endpoint] = nil }
        await member.link.close()
    }

    /// Removes connections that further files can't use: closed connections, and open connections whose server does not respond.
    private func removeUnusable(of endpoint: Endpoint) {
        let unusable = groups[endpoint]?.members.filter { !$0.link.client.isOpen || $0.isSilent(for: policy.silence, policy) } ?? []
        guard !unusable.isEmpty else { return }
        let numbers = Set(unusable.map(\.number))
        groups[endpoint]?.members.removeAll { numbers.contains($0.number) }
        for member in unusable { retire(member, of: endpoint) }
    }

    /// Stops assigning files to a connection, and closes it when its current files are done. Until then, the connection stays open, because
    /// a slow operation, such as syncing a large file, may still succeed.
    private func retire(_ member: Member, of endpoint: Endpoint) {
        member.idleTimer?.cancel()
        if member.link.client.isOpen, member.files > 0 { groups[endpoint]?.silent.append(member) } else { giveUp(member) }
    }

    private func giveUp(_ member: Member) {
        let client = member.link.client
        client.end(
            TransferError(.transient, .stalled, "\(client.serverName) stopped responding, so the connection was closed."))
        Task { await member.link.close() }
    }

    /// Closes all connections. The pool then opens no new connections.
    func shutdown() async {
        isShutDown = true
        let all = groups
        groups = [:]
        for group in all.values {
            for waiter in group.waiters { waiter.resume(.failure(Self.shutDownError)) }
            for opening in group.openings.values { opening.cancel() }
            for member in group.members + group.silent {
                member.idleTimer?.cancel()
                await member.link.close()
            }
            for opening in group.openings.values { await opening.value }
        }
        await connector.shutdown()
    }

    private static let shutDownError = TransferError(.transient, .connectionLost, "The SFTP transport was shut down.")
}
