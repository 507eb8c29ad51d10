import Logging
import TransferCore
import TransportSupport

/// The connections to all endpoints: each is shared by all files that go to its endpoint.
///
/// Where those that there are have enough to do, another one is made, one at a time, as a server may refuse many at once (`MaxStartups`,
/// sshd_config(5)).
actor ConnectionPool {
    /// How the pool decides.
    struct Policy: Sendable {
        /// How many files each connection has before there is another one.
        var filesBeforeNext = 2
        /// After how long without a file a connection is closed.
        var idleTime = Duration.seconds(60)
        /// How long no further connection is tried after one was refused.
        var pause = Duration.seconds(30)
    }

    private struct Member {
        let number: Int
        let link: any SFTPLink
        let connection: PooledConnection
        var files = 0
        /// Closes it when it was idle for long enough.
        var alarm: Task<Void, Never>?
    }

    private struct Group {
        var members: [Member] = []
        var opening: Task<Void, Never>?
        /// Those who have no connection at all.
        var waiters: [Once<Void>] = []
        /// Until when no further connection is tried.
        var pausedUntil: ContinuousClock.Instant?
    }

    private let connector: any SFTPConnector
    private let policy: Policy
    private var groups: [Endpoint: Group] = [:]
    private var lastNumber = 0
    private var isShutDown = false

    init(_ connector: any SFTPConnector, policy: Policy = Policy()) {
        self.connector = connector
        self.policy = policy
    }

    /// How many connections there are to an endpoint.
    func count(of endpoint: Endpoint) -> Int { groups[endpoint]?.members.count ?? 0 }

    /// Does something with a connection to an endpoint, which others may use at the same time.
    ///
    /// - Parameters:
    ///   - limit: How many connections there may be to the endpoint.
    ///   - isApart: Whether to wait for a connection that nobody uses, as long as another one can be made.
    /// - Throws: As ``SFTPConnector/connect(to:credentials:logger:)``; what the body throws.
    nonisolated func use<Result: Sendable>(
        _ endpoint: Endpoint, atMost limit: Int, apart isApart: Bool = false, credentials: any CredentialProvider, logger: Logger,
        _ body: (PooledConnection) async throws -> Result
    ) async throws -> Result {
        let (number, connection) = try await take(endpoint, limit, isApart, credentials, logger)
        do {
            let result = try await body(connection)
            await give(number, of: endpoint)
            return result
        } catch {
            await give(number, of: endpoint)
            throw error
        }
    }

    private func take(
        _ endpoint: Endpoint, _ limit: Int, _ isApart: Bool, _ credentials: any CredentialProvider, _ logger: Logger
    ) async throws -> (Int, PooledConnection) {
        while true {
            try Task.checkCancellation()
            guard !isShutDown else { throw Self.shutDown }
            removeEnded(of: endpoint)
            var group = groups[endpoint] ?? Group()
            let index = group.members.indices.min { group.members[$0].files < group.members[$1].files }
            let isUsed = index.map { group.members[$0].files > 0 } ?? true
            let isBusy = index.map { group.members[$0].files >= policy.filesBeforeNext } ?? true
            let isPaused = index != nil && group.pausedUntil.map { $0 > .now } ?? false
            if isBusy || (isApart && isUsed), !isPaused, group.opening == nil, group.members.count < max(1, limit) {
                group.opening = Task { await self.open(endpoint, credentials, logger) }
            }
            if let index, !(isApart && isUsed && group.opening != nil) {
                group.members[index].files += 1
                group.members[index].alarm?.cancel()
                group.members[index].alarm = nil
                groups[endpoint] = group
                return (group.members[index].number, group.members[index].connection)
            }
            let arrival = Once<Void>()
            group.waiters.append(arrival)
            groups[endpoint] = group
            do {
                try await arrival.valueUnlessCancelled()
            } catch  where index != nil && !(error is CancellationError) {
                // One that others use is better than none.
                continue
            }
        }
    }

    private func open(_ endpoint: Endpoint, _ credentials: any CredentialProvider, _ logger: Logger) async {
        let result: Result<any SFTPLink, any Error>
        do {
            let link = try await connector.connect(to: endpoint, credentials: credentials, logger: logger)
            do {
                _ = try await link.client.features()
                result = .success(link)
            } catch {
                await link.close()
                result = .failure(error)
            }
        } catch {
            result = .failure(error)
        }
        if isShutDown, case .success(let link) = result { await link.close() }
        var group = groups[endpoint] ?? Group()
        let waiters = group.waiters
        group.waiters = []
        group.opening = nil
        switch result {
        case .success(let link) where !isShutDown:
            lastNumber += 1
            let connection = PooledConnection(
                client: link.client, checksums: RemoteChecksums(link.commands), hostKeyFingerprint: link.hostKeyFingerprint)
            group.members.append(Member(number: lastNumber, link: link, connection: connection))
            group.pausedUntil = nil
            groups[endpoint] = group
            if waiters.isEmpty { setAlarm(for: lastNumber, of: endpoint) }
            for waiter in waiters { waiter.resume(.success(())) }
        case .success:
            for waiter in waiters { waiter.resume(.failure(Self.shutDown)) }
        case .failure(let error):
            group.pausedUntil = .now + policy.pause
            groups[endpoint] = group
            for waiter in waiters { waiter.resume(.failure(error)) }
        }
    }

    private func give(_ number: Int, of endpoint: Endpoint) {
        guard let index = groups[endpoint]?.members.firstIndex(where: { $0.number == number }) else { return }
        groups[endpoint]?.members[index].files -= 1
        if groups[endpoint]?.members[index].files == 0 { setAlarm(for: number, of: endpoint) }
    }

    private func setAlarm(for number: Int, of endpoint: Endpoint) {
        guard let index = groups[endpoint]?.members.firstIndex(where: { $0.number == number }) else { return }
        let alarm = Task { [weak self, policy] in
            guard (try? await Task.sleep(for: policy.idleTime)) != nil else { return }
            await self?.closeIfIdle(number, of: endpoint)
        }
        groups[endpoint]?.members[index].alarm = alarm
    }

    private func closeIfIdle(_ number: Int, of endpoint: Endpoint) async {
        guard let index = groups[endpoint]?.members.firstIndex(where: { $0.number == number }),
            let member = groups[endpoint]?.members[index], member.files == 0
        else { return }
        groups[endpoint]?.members.remove(at: index)
        if groups[endpoint]?.members.isEmpty == true, groups[endpoint]?.opening == nil { groups[endpoint] = nil }
        await member.link.close()
    }

    private func removeEnded(of endpoint: Endpoint) {
        let ended = groups[endpoint]?.members.filter { !$0.link.client.isOpen } ?? []
        guard !ended.isEmpty else { return }
        groups[endpoint]?.members.removeAll { !$0.link.client.isOpen }
        for member in ended {
            member.alarm?.cancel()
            Task { await member.link.close() }
        }
    }

    /// Closes all connections, and lets nobody make another.
    func shutdown() async {
        isShutDown = true
        let all = groups
        groups = [:]
        for group in all.values {
            for waiter in group.waiters { waiter.resume(.failure(Self.shutDown)) }
            group.opening?.cancel()
            for member in group.members {
                member.alarm?.cancel()
                await member.link.close()
            }
            await group.opening?.value
        }
        await connector.shutdown()
    }

    private static let shutDown = TransferError(.transient, .connectionLost, "The SFTP transport was shut down.")
}
