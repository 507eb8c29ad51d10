import CurlEngine
import Dispatch
import ScriptedHTTP
import SystemPackage
import Testing
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#endif

/// Uploads of files that are not in the page cache, so a reader thread must read them from the disk.
@Suite struct ColdFileTests {
    @Test func sendsWholeFile() async throws {
        let size = 3_000_000
        let file = try TemporaryFile(size: size)
        let reader = try await FileReader.open(file.source, on: WorkerThreads(limit: 1))
        try evict(file.path)
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        // This buffer is smaller than a block that a reader thread reads, so the engine passes each block to libcurl in several steps.
        var configuration = CurlEngine.Configuration()
        configuration.uploadBufferSize = 64 * 1024
        let engine = CurlEngine(configuration: configuration)
        let response = try await engine.perform(
            HTTPRequest(method: "PATCH", url: server.url(), body: .file(reader, offset: 1, length: Int64(size - 1))))
        #expect(response.sent.accepted == Int64(size - 1))
        #expect(server.requests.first?.body == Array(TemporaryFile.content(size: size)[1...]))
        await engine.shutdown()
        server.stop()
    }

    @Test func uploadsShareReaderThreads() async throws {
        let size = 200_000
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        let engine = CurlEngine()
        let threads = WorkerThreads(limit: 2)
        try await withThrowingTaskGroup { group in
            for _ in 0..<20 {
                group.addTask {
                    let file = try TemporaryFile(size: size)
                    let reader = try await FileReader.open(file.source, on: threads)
                    try evict(file.path)
                    _ = try await engine.perform(
                        HTTPRequest(method: "PATCH", url: server.url(), body: .file(reader, offset: 0, length: Int64(size))))
                }
            }
            try await group.waitForAll()
        }
        #expect(server.requests.count == 20)
        #expect(server.requests.allSatisfy { $0.body == TemporaryFile.content(size: size) })
        await engine.shutdown()
        server.stop()
    }

    /// If the page cache can't be queried, as with some memory or network file systems, a reader thread reads one block ahead.
    @Test(.timeLimit(.minutes(10)), arguments: [(0, 1), (0, 262_144), (1, 262_144), (0, 262_145), (7, 524_288), (3, 3_000_000)])
    func sendsBlocksInOrder(offset: Int, length: Int) async throws {
        let size = offset + length + 300_000
        let file = try TemporaryFile(size: size)
        let threads = WorkerThreads(limit: 4)
        let reader = try await FileReader.open(file.source, on: threads)
        let server = try ScriptedServer { _, _ in [.answer(204)] }
        var configuration = CurlEngine.Configuration()
        configuration.uploadBufferSize = 64 * 1024
        let engine = CurlEngine(configuration: configuration, readers: ReaderThreads(readsCachedFilesDirectly: false) { _ in threads })
        let body = HTTPBody.file(reader, offset: Int64(offset), length: Int64(length))
        _ = try await engine.perform(HTTPRequest(method: "PATCH", url: server.url(), body: body))
        _ = try await engine.perform(HTTPRequest(method: "PATCH", url: server.url(), body: .sequence([body, .bytes([0]), body])))
        let content = Array(TemporaryFile.content(size: size)[offset..<offset + length])
        #expect(server.requests[0].body == content)
        #expect(server.requests[1].body == content + [0] + content)
        await engine.shutdown()
        server.stop()
    }

    @Test func detectsShrunkFile() async throws {
        let file = try TemporaryFile(size: 100_000)
        let source = try file.source
        let reader = try await FileReader.open(source, on: WorkerThreads(limit: 1))
        try file.write(TemporaryFile.content(size: 50_000))
        try evict(file.path)
        let server = try ScriptedServer { _, _ in [.read(nil), .answer(204)] }
        let engine = CurlEngine()
        let error = await #expect(throws: TransferError.self) {
            try await engine.perform(HTTPRequest(method: "PATCH", url: server.url(), body: .file(reader, offset: 0, length: source.size)))
        }
        #expect(error?.failureClass == .sourceChanged)
        await engine.shutdown()
        server.stop()
    }

    @Test(.timeLimit(.minutes(10))) func hangingDiskDoesNotDelayOtherDisks() async throws {
        let slow = try TemporaryFile(size: 300_000)
        let abandonedFile = try TemporaryFile(size: 300_000)
        let quick = try TemporaryFile(size: 300_000)
        let opening = WorkerThreads(limit: 1)
        let slowReader = try await FileReader.open(slow.source, on: opening)
        let quickReader = try await FileReader.open(quick.source, on: opening)
        let abandonedReader = try await FileReader.open(abandonedFile.source, on: opening)
        let slowDisk = WorkerThreads(limit: 1)
        let quickDisk = WorkerThreads(limit: 1)
        let gate = DispatchSemaphore(value: 0)
        try slowDisk.submit { gate.wait() }
        let engine = CurlEngine(
            configuration: .init(),
            readers: ReaderThreads(readsCachedFilesDirectly: false) { $0.source.path == quick.path ? quickDisk : slowDisk })
        let (arrived, arrival) = AsyncStream.makeStream(of: Void.self)
        let server = try ScriptedServer { request, _ in
            request.path == "/slow" ? [.call { arrival.finish() }, .answer(204)] : [.answer(204)]
        }
        func begin(_ reader: FileReader) -> Task<HTTPResponse, any Error> {
            let request = HTTPRequest(method: "PATCH", url: server.url("/slow"), body: .file(reader, offset: 0, length: 300_000))
            return Task { try await engine.perform(request) }
        }
        let waiting = begin(slowReader)
        let abandoned = begin(abandonedReader)
        for await _ in arrived {}
        let other = try await engine.perform(
            HTTPRequest(method: "PATCH", url: server.url(), body: .file(quickReader, offset: 0, length: 300_000)))
        #expect(other.sent.accepted == 300_000)
        abandoned.cancel()
        await #expect(throws: CancellationError.self) { try await abandoned.value }
        gate.signal()
        #expect(try await waiting.value.sent.accepted == 300_000)
        await engine.shutdown()
        server.stop()
    }

    /// Writes the file to the disk, and drops it from the page cache (posix_fadvise(2)).
    private func evict(_ path: FilePath) throws {
        #if os(Linux)
            let descriptor = try FileDescriptor.open(path, .readWrite)
            try descriptor.closeAfter {
                let size = Int(try descriptor.seek(offset: 0, from: .end))
                // The kernel keeps pages that are in use, so this may take several rounds.
                repeat {
                    _ = fdatasync(descriptor.rawValue)
                    _ = posix_fadvise(descriptor.rawValue, 0, 0, POSIX_FADV_DONTNEED)
                } while isCached(descriptor, size)
            }
        #endif
    }

    #if os(Linux)
        /// Whether the page cache contains any page of the file (mincore(2)).
        private func isCached(_ descriptor: FileDescriptor, _ size: Int) -> Bool {
            guard let pages = unsafe mmap(nil, size, PROT_READ, MAP_SHARED, descriptor.rawValue, 0), unsafe pages != MAP_FAILED else {
                return false
            }
            defer { unsafe munmap(pages, size) }
            var states = [UInt8](repeating: 0, count: (size + 4_095) / 4_096)
            return unsafe mincore(pages, size, &states) == 0 && states.contains { $0 & 1 == 1 }
        }
    #endif
}
