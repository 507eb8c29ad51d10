import CurlEngine
import Dispatch
import Foundation
import Locking
import ProcessFixture
import ScriptedHTTP
import Testing
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#endif

/// The resources that many transfers use. Each test runs in its own process, because the tests measure the threads, descriptors and memory of the
/// whole process.
@Suite(.timeLimit(.minutes(30))) struct ResourceTests {
    /// libdispatch ends a process that runs out of descriptors, so the engine opens no connection if only a few are free. The error must
    /// not name the server as the cause.
    @Test(.oneProcessAtATime) func opensNoConnectionIfDescriptorsAreScarce() async {
        await #expect(processExitsWith: .success) {
            let server = try OneThreadServer(batchSize: 1)
            let engine = CurlEngine()
            let request = HTTPRequest(method: "GET", url: server.url)
            // The first request sets up libcurl and OpenSSL, which open and close files. If they closed a file later in this test, a low descriptor
            // would be free. No server listens on this port, so no connection stays open.
            let unused = HTTPRequest(method: "GET", url: "http://127.0.0.1:1/")
            await #expect(throws: CurlEngineError.self) { try await engine.perform(unused) }
            var limit = rlimit()
            unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            // The process inherits a varying number of descriptors from the test runner.
            var last = dup(STDERR_FILENO)
            let (before, lowLimit) = (limit.rlim_cur, max(256, last + 64))
            limit.rlim_cur = rlim_t(lowLimit)
            unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            while last >= 0, last < lowLimit - 26 { last = dup(STDERR_FILENO) }
            let error = await #expect(throws: CurlEngineError.self) { try await engine.perform(request) }
            #expect(error?.kind == .outOfResources, "\(error?.message ?? "")")
            limit.rlim_cur = before
            unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            #expect(try await engine.perform(request).status == 204)
            await engine.shutdown()
        }
    }

    /// The server responds only after all requests have arrived, which ensures that they run concurrently.
    @Test(.oneProcessAtATime) func thousandRequestsShareThreads() async {
        await #expect(processExitsWith: .success) {
            var limit = rlimit()
            unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            limit.rlim_cur = min(limit.rlim_max, 8192)
            unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let threads = Locked(0)
            let server = try OneThreadServer(batchSize: 1000) { threads.withLock { $0 = countThreads() } }
            var configuration = CurlEngine.Configuration()
            configuration.maximumConnections = 1000
            let engine = CurlEngine(configuration: configuration)
            let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
                for _ in 0..<1000 {
                    group.addTask { try await engine.perform(HTTPRequest(method: "GET", url: server.url)).status }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(statuses == Array(repeating: 204, count: 1000))
            // These are the threads of the server, the engine and the cooperative pool.
            let count = threads.withLock { $0 }
            #expect(count > 0 && count < 50)
            await engine.shutdown()
        }
    }

    @Test(.oneProcessAtATime, arguments: [true, false]) func manyFilesShareThreads(isUpload: Bool) async {
        await #expect(processExitsWith: .success) { [isUpload = isUpload as Bool] in
            let (count, size) = (200, 300_000)
            let maximumThreadCount = Locked(0)
            let recordThreadCount: @Sendable () -> Void = {
                let threads = countThreads()
                maximumThreadCount.withLock { $0 = max($0, threads) }
            }
            let server = try OneThreadServer(
                batchSize: count, content: isUpload ? nil : TemporaryFile.content(size: size), onBatch: recordThreadCount)
            // Each read or write waits until all transfers have begun to read or write.
            let allStarted = DispatchGroup()
            for _ in 0..<count { allStarted.enter() }
            var configuration = CurlEngine.Configuration()
            configuration.maximumConnections = count
            let (engine, threads, file) = (CurlEngine(configuration: configuration), WorkerThreads(limit: 4), try TemporaryFile(size: size))
            try await withThrowingTaskGroup { group in
                for _ in 0..<count {
                    group.addTask {
                        if isUpload {
                            let reader = try await FileReader.open(try file.source, on: threads)
                            var request = HTTPRequest(method: "POST", url: server.url, body: .file(reader, offset: 0, length: Int64(size)))
                            request.observeBody = { _ in
                                allStarted.wait()
                                recordThreadCount()
                            }
                            let isFirst = Locked(true)
                            let pacing: @Sendable (Int) -> Allowance = { limit in
                                isFirst.withLock { isFirst in
                                    if isFirst { allStarted.leave() }
                                    isFirst = false
                                }
                                return Allowance(bytes: limit)
                            }
                            #expect(try await engine.perform(request, pacing: pacing).sent.accepted == Int64(size))
                        } else {
                            let sink = CountingSink(await: allStarted, recordThreadCount)
                            _ = try await engine.download(HTTPRequest(method: "GET", url: server.url), into: sink)
                            #expect(sink.count == size)
                        }
                    }
                }
                try await group.waitForAll()
            }
            // These are the threads of the server, the engine, the disk and the cooperative pool.
            #expect(maximumThreadCount.withLock { $0 } < 50)
            await engine.shutdown()
        }
    }

    @Test(.oneProcessAtATime) func requestsDoNotLeak() async {
        await #expect(processExitsWith: .success) {
            let server = try OneThreadServer()
            let engine = CurlEngine()
            func perform(_ count: Int) async throws {
                for number in 0..<count {
                    _ = try await engine.perform(
                        HTTPRequest(
                            method: number.isMultiple(of: 2) ? "GET" : "DELETE", url: server.url, headers: ["X-Number": "\(number)"]))
                }
            }
            try await perform(1000)
            let before = try residentBytes()
            let descriptors = countEntries("/proc/self/fd")
            try await perform(10_000)
            // Each request may leak at most 100 bytes. A sanitizer keeps freed memory and detects leaks itself, so this check is skipped
            // with a sanitizer.
            if !isSanitized { #expect(try residentBytes() < before + 1_000_000) }
            #expect(countEntries("/proc/self/fd") == descriptors)
            await engine.shutdown()
        }
    }

    /// Transfers small files in both directions, six in parallel as the queue does.
    @Test(.oneProcessAtATime) func filesDoNotLeak() async {
        await #expect(processExitsWith: .success) {
            let size = 4096
            let server = try OneThreadServer(content: TemporaryFile.content(size: size))
            let (engine, threads, file) = (CurlEngine(), WorkerThreads(limit: 4), try TemporaryFile(size: size))
            @Sendable func transfer(_ number: Int) async throws {
                if number.isMultiple(of: 2) {
                    let reader = try await FileReader.open(try file.source, on: threads)
                    let request = HTTPRequest(method: "POST", url: server.url, body: .file(reader, offset: 0, length: Int64(size)))
                    #expect(try await engine.perform(request).sent.accepted == Int64(size))
                } else {
                    let sink = CountingSink()
                    _ = try await engine.download(HTTPRequest(method: "GET", url: server.url), into: sink)
                    #expect(sink.count == size)
                }
            }
            @Sendable func transferFiles(_ count: Int) async throws {
                try await withThrowingTaskGroup { group in
                    for first in 0..<6 {
                        group.addTask { for number in stride(from: first, to: count, by: 6) { try await transfer(number) } }
                    }
                    try await group.waitForAll()
                }
            }
            try await transferFiles(2_000)
            let before = (memory: try residentBytes(), descriptors: countEntries("/proc/self/fd"), threads: countThreads())
            try await transferFiles(10_000)
            // Each file may leak at most 100 bytes. Each of the six parallel transfers may have three open descriptors: a connection, the server's
            // end of it, and a file.
            if !isSanitized { #expect(try residentBytes() < before.memory + 1_000_000) }
            #expect(countEntries("/proc/self/fd") <= before.descriptors + 18)
            #expect(countThreads() <= before.threads + 12)
            await engine.shutdown()
        }
    }
}

private final class CountingSink: HTTPResponseSink {
    private let bytes = Locked(0)
    private let allStarted: DispatchGroup?
    private let onWrite: @Sendable () -> Void

    /// - Parameter allStarted: A group that this sink leaves when the response begins. Each write waits until the group is empty.
    init(await allStarted: DispatchGroup? = nil, _ onWrite: @escaping @Sendable () -> Void = {}) {
        self.allStarted = allStarted
        self.onWrite = onWrite
    }

    var count: Int { bytes.withLock { $0 } }

    func accepts(_ head: HTTPResponseHead) -> Bool {
        allStarted?.leave()
        return head.status == 200
    }

    func write(_ span: RawSpan) {
        allStarted?.wait()
        onWrite()
        bytes.withLock { $0 += span.byteCount }
    }
}

private var isSanitized: Bool {
    unsafe dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
}

private func residentBytes() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    return (text.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0) * Int(getpagesize())
}

private func countThreads() -> Int { countEntries("/proc/self/task") }

private func countEntries(_ folder: String) -> Int {
    guard let directory = unsafe opendir(folder) else { return 0 }
    defer { unsafe closedir(directory) }
    var count = 0
    while unsafe readdir(directory) != nil { count += 1 }
    return count
}
