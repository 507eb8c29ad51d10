import Foundation
import Locking
import Logging
import ScriptedSFTP
import SystemPackage
import Testing
import TransferCore
import TransportSFTP

/// Uploads to a server whose disk needs more time for a sync than the connections last.
struct InterruptedSyncTests {
    /// A server with one file. A connection breaks during a sync of more than `syncLimit` bytes, and after `writeLimit` written bytes.
    fileprivate final class SlowDiskServer: SFTPConnector {
        private struct State {
            var content: [UInt8] = []
            /// The written bytes that are not synced yet.
            var dirty: [Range<Int>] = []
            var syncs = 0
            var interruptedSyncs = 0
            var hasFailed = false
            var connections = 0
        }

        /// The maximum number of bytes that a sync writes to the disk before the connection breaks.
        private let syncLimit: Int
        /// The number of bytes that a connection receives before it breaks.
        private let writeLimit: Int
        /// Whether the disk loses the bytes of an interrupted sync. The server reports this loss only to the broken connection, so later syncs
        /// succeed.
        private let losesBytes: Bool
        /// The number of interrupted syncs after which no further sync is interrupted. If `failsOnce` is true, the next sync loses a block and
        /// returns an error. All other syncs succeed.
        private let interruptionsBeforeFailure: Int
        private let state = Locked(State())

        init(
            syncLimit: Int, writeLimit: Int = .max, losesBytes: Bool = false, interruptionsBeforeFailure: Int = .max, failsOnce: Bool = true
        ) {
            self.syncLimit = syncLimit
            self.writeLimit = writeLimit
            self.losesBytes = losesBytes
            self.interruptionsBeforeFailure = interruptionsBeforeFailure
            state.withLock { $0.hasFailed = !failsOnce }
        }

        var content: [UInt8] { state.withLock { $0.content } }
        var syncs: Int { state.withLock { $0.syncs } }

        func connect(to endpoint: Endpoint, credentials: any CredentialProvider, logger: Logger) async throws -> any SFTPLink {
            let string = { @Sendable (text: String) in ScriptedPeer.number(text.utf8.count) + Array(text.utf8) }
            let greeting = ScriptedPeer.packet(
                .version,
                ScriptedPeer.number(3) + ["fsync@openssh.com", "posix-rename@openssh.com"].flatMap { string($0) + string("1") })
            let current = Locked<ScriptedPeer?>(nil)
            let isBroken = Locked(false)
            let received = Locked(0)
            let peer = ScriptedPeer(greeting: greeting) { [self] request in
                guard !isBroken.withLock({ $0 }) else { return [] }
                func breakConnection() -> [[UInt8]] {
                    isBroken.withLock { $0 = true }
                    current.withLock { $0?.breakConnection() }
                    return []
                }
                switch request.type {
                case .open: return [ScriptedPeer.handle(request.id)]
                case .lstat: return [ScriptedPeer.status(request.id, .noSuchFile)]
                case .fstat: return [ScriptedPeer.attributes(request.id, size: UInt64(content.count))]
                case .read:
                    let (offset, count) = request.range
                    return [ScriptedPeer.data(request.id, content.dropFirst(offset).prefix(count))]
                case .fsetstat:
                    if let size = request.newSize { state.withLock { $0.content.removeLast(max(0, $0.content.count - size)) } }
                case .write:
                    write(Array(request.body.dropFirst(20)), at: request.range.offset)
                    let count = received.withLock { received in
                        received += request.range.count
                        return received
                    }
                    if count >= writeLimit {
                        current.withLock { $0?.breakConnection() }
                        isBroken.withLock { $0 = true }
                    }
                case .extended where request.body.starts(with: string("fsync@openssh.com")):
                    switch sync() {
                    case nil: return breakConnection()
                    case false?: return [ScriptedPeer.status(request.id, .failure)]
                    case true?: break
                    }
                default: break
                }
                return [ScriptedPeer.status(request.id, .ok)]
            }
            current.withLock { $0 = peer }
            state.withLock { $0.connections += 1 }
            return peer
        }

        private func write(_ bytes: [UInt8], at offset: Int) {
            state.withLock { state in
                let end = offset + bytes.count
                if state.content.count < end { state.content += [UInt8](repeating: 0, count: end - state.content.count) }
                state.content.replaceSubrange(offset..<end, with: bytes)
                state.dirty.append(offset..<end)
            }
        }

        /// Returns whether the sync succeeds; nil if the connection breaks before the sync ends.
        private func sync() -> Bool? {
            state.withLock { state in
                let dirty = state.dirty
                state.dirty = []
                func loseBytes() {
                    for range in dirty {
                        for index in range where index < state.content.count { state.content[index] = 0 }
                    }
                }
                if state.interruptedSyncs >= interruptionsBeforeFailure {
                    guard !state.hasFailed else {
                        state.syncs += 1
                        return true
                    }
                    state.hasFailed = true
                    // Loses only an old block, because a comparison of the recent blocks would not detect it.
                    for index in (dirty.first ?? 0..<0) { state.content[index] = 0 }
                    return false
                }
                guard dirty.reduce(0, { $0 + $1.count }) > syncLimit else {
                    state.syncs += 1
                    return true
                }
                state.interruptedSyncs += 1
                if losesBytes { loseBytes() }
                return nil
            }
        }
    }

    /// Uploads a file in as many attempts as needed, and checks its content on the server.
    ///
    /// - Returns: The receipt, and the confirmed bytes at the end of each attempt that failed.
    fileprivate func upload(_ size: Int, to server: SlowDiskServer) async throws -> (receipt: TransferReceipt, confirmed: [Int64]) {
        let path = FilePath(FileManager.default.temporaryDirectory.appending(path: "slow-disk-\(UUID().uuidString)").path)
        try content(size).write(to: URL(filePath: path.string))
        defer { try? FileManager.default.removeItem(atPath: path.string) }
        let checkpoint = Locked<Checkpoint?>(nil)
        var confirmed: [Int64] = []
        while true {
            let transport = SFTPTransport(connector: server)
            let attempt = FileAttempt(
                transferID: "t-1", number: confirmed.count + 1, endpoint: .sftp("sftp://me@peer/"),
                source: UploadSource(path: path, identity: try SourceIdentity(ofFileAt: path)), remotePath: try RemotePath("reel.mov"),
                checkpoint: checkpoint.withLock { $0 }, credentials: NoCredentials(), logger: Logger(label: "test"))
            let reporter = AttemptReporter(
                progress: { _, _ in }, checkpoint: { saved in checkpoint.withLock { $0 = saved } })
            let result: Result<TransferReceipt, any Error>
            do {
                result = .success(try await transport.perform(attempt, reporting: reporter))
            } catch {
                result = .failure(error)
            }
            await transport.shutdown()
            switch result {
            case .success(let receipt):
                #expect(server.content == [UInt8](content(size)))
                return (receipt, confirmed)
            case .failure(let error as TransferError) where error.failureClass == .transient && confirmed.count < 40:
                confirmed.append(checkpoint.withLock { $0?.confirmed ?? 0 })
            case .failure(let error as TransferError) where error.failureClass == .resumeLost && confirmed.count < 40:
                // The queue restarts the file.
                checkpoint.withLock { $0 = nil }
                confirmed.append(0)
            case .failure(let error): throw error
            }
        }
    }

    /// Returns the largest number of consecutive attempts that did not increase the number of confirmed bytes.
    private func longestStandstill(_ confirmed: [Int64]) -> Int {
        var (longest, current, last) = (0, 0, Int64(0))
        for position in confirmed {
            current = position > last ? 0 : current + 1
            last = position
            longest = max(longest, current)
        }
        return longest
    }

    /// The disk can sync 1 MiB in time, and loses the bytes of interrupted syncs. The upload still syncs each byte.
    @Test(arguments: [Int.max, 3 << 20]) func syncsFewerBytesAtATime(writeLimit: Int) async throws {
        let server = SlowDiskServer(syncLimit: 1 << 20, writeLimit: writeLimit, losesBytes: true)
        let (receipt, confirmed) = try await upload(9 << 20, to: server)
        #expect(receipt.warnings.isEmpty && server.syncs >= 9, "\(receipt.warnings), \(server.syncs) syncs")
        #expect(longestStandstill(confirmed) < 8, "\(confirmed)")
    }

    /// Each sync takes longer than the connection lasts, even a sync of few bytes. The transport then treats the server as one that can't sync.
    @Test(arguments: [Int.max, 3 << 20]) func completesWithoutSyncs(writeLimit: Int) async throws {
        let server = SlowDiskServer(syncLimit: -1, writeLimit: writeLimit)
        let (receipt, confirmed) = try await upload(8 << 20, to: server)
        #expect(receipt.warnings.contains { $0.contains("was not synced") } && server.syncs == 0, "\(receipt.warnings)")
        #expect(longestStandstill(confirmed) < 8, "\(confirmed)")
    }
}

extension InterruptedSyncTests {
    /// After too many interrupted syncs, checkpoints confirm bytes that no sync covers. If the last sync then fails, these bytes are sent again.
    @Test func sendsUnsyncedBytesAgainAfterFailedSync() async throws {
        let server = SlowDiskServer(syncLimit: -1, writeLimit: 3 << 20, interruptionsBeforeFailure: 3)
        let (receipt, _) = try await upload(8 << 20, to: server)
        #expect(receipt.warnings.isEmpty && server.syncs >= 1, "\(receipt.warnings)")
    }

    /// A sync of the complete file was interrupted. The next sync succeeds, although the disk lost the bytes of the interrupted sync.
    @Test func warnsAfterInterruptedSyncOfCompleteFile() async throws {
        let server = SlowDiskServer(syncLimit: -1, interruptionsBeforeFailure: 4, failsOnce: false)
        let (receipt, _) = try await upload(8 << 20, to: server)
        #expect(receipt.warnings.contains { $0.contains("may be damaged") } && server.syncs == 1, "\(receipt.warnings)")
    }
}

extension ScriptedPeer.ReceivedRequest {
    /// The new size in a request to change the attributes of an open file; nil if the request does not change the size.
    fileprivate var newSize: Int? {
        let number = { (start: Int) in body.dropFirst(start).prefix(4).reduce(0) { $0 << 8 | Int($1) } }
        return number(8) & 1 == 0 ? nil : number(12) << 32 | number(16)
    }
}
