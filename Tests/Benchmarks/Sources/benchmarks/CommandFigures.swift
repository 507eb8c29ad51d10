import Foundation

/// Measures how long a user waits for `transferq`. Most values cover the whole run of the program, including its start.
struct CommandFigures {
    let transferq: String
    let queue: String
    let sink: String
    let work: String
    let rounds: Int

    private var store: String { "\(work)/command-store" }

    func run() async throws -> [QueueFigures.Figure] {
        try await listing() + control() + firstByte() + preemption()
    }

    /// Runs the program, and returns its duration in milliseconds.
    @discardableResult private func transferq(_ arguments: String...) throws -> Double {
        try measure([transferq, "--store", store] + arguments).wallSeconds * 1_000
    }

    private func clear() { try? FileManager.default.removeItem(atPath: store) }

    private func listing() throws -> [QueueFigures.Figure] {
        clear()
        defer { clear() }
        _ = try measure([queue, "fill", store, "100000"])
        let samples = try (0..<rounds).map { _ in (try transferq("list"), try transferq("list", "--json")) }
        return [
            .init(name: "list of 100,000 sessions, ms", samples: samples.map(\.0), aim: "under 1000"),
            .init(name: "list --json of 100,000 sessions, ms", samples: samples.map(\.1), aim: "under 1000"),
        ]
    }

    /// Measures commands that an agent performs while it also sends small files at full speed.
    private func control() throws -> [QueueFigures.Figure] {
        clear()
        defer { clear() }
        let server = try Server(sink, [])
        defer { server.stop() }
        let folder = "\(work)/command-files"
        try? FileManager.default.removeItem(atPath: folder)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for number in 0..<50_000 { try Data([1]).write(to: URL(fileURLWithPath: "\(folder)/\(number)")) }
        try transferq("account", "add", "sink", "http://127.0.0.1:\(server.port)/files/")
        try transferq("add", "sink", folder)
        try transferq("add", "sink", "\(folder)/1", "--hold", "--tag", "held")
        try transferq("agent", "start")
        defer { _ = try? transferq("agent", "stop") }
        var (status, change): ([Double], [Double]) = ([], [])
        for _ in 0..<rounds * 4 {
            status.append(try transferq("queue", "status"))
            change.append(try transferq("release", "--tag", "held"))
            status.append(try transferq("queue", "status"))
            change.append(try transferq("hold", "--tag", "held"))
        }
        let alone = try (0..<rounds * 8).map { _ in try transferq("--version") }
        return [
            .init(name: "queue status with a busy agent, ms", samples: status, aim: "under 50"),
            .init(name: "a durable change with a busy agent, ms", samples: change, aim: "under 50"),
            .init(name: "the program alone (--version), ms", samples: alone, aim: ""),
        ]
    }

    /// Measures the time from the start of `transferq run` until the server receives the first byte of content.
    private func firstByte() async throws -> [QueueFigures.Figure] {
        let server = try FirstByteServer()
        defer { server.stop() }
        let file = "\(work)/command-file"
        try Data(repeating: 7, count: 4_096).write(to: URL(fileURLWithPath: file))
        defer { try? FileManager.default.removeItem(atPath: file) }
        var samples: [Double] = []
        for _ in 0..<rounds * 4 {
            clear()
            try transferq("account", "add", "a", "http://127.0.0.1:\(server.port)/files/")
            try transferq("add", "a", file)
            let start = ContinuousClock.now
            try transferq("run", "--progress", "none")
            guard let arrival = await server.nextArrival() else { throw BenchmarkError.failed("No byte arrived") }
            samples.append(start.duration(to: arrival) / .milliseconds(1))
        }
        clear()
        return [.init(name: "from transferq run to the first byte, ms", samples: samples, aim: "under 100")]
    }

    /// Measures the time from the start of `transferq now` until the server receives the first byte of the session that this command
    /// starts, while an agent with one slot uploads a large file at full speed.
    private func preemption() async throws -> [QueueFigures.Figure] {
        clear()
        defer { clear() }
        let (large, small) = (try Server(sink, []), try FirstByteServer())
        defer {
            large.stop()
            small.stop()
        }
        let (largeFile, smallFile) = ("\(work)/command-large", "\(work)/command-small")
        defer { for file in [largeFile, smallFile] { try? FileManager.default.removeItem(atPath: file) } }
        try Data(repeating: 7, count: 4_096).write(to: URL(fileURLWithPath: smallFile))
        guard FileManager.default.createFile(atPath: largeFile, contents: nil), let handle = FileHandle(forWritingAtPath: largeFile) else {
            throw BenchmarkError.failed("Cannot create \(largeFile)")
        }
        // A sparse file, whose upload takes longer than all samples.
        try handle.truncate(atOffset: 4 << 40)
        try handle.close()
        try transferq("account", "add", "large", "http://127.0.0.1:\(large.port)/files/")
        try transferq("account", "add", "small", "http://127.0.0.1:\(small.port)/files/")
        try transferq("add", "large", largeFile)
        try transferq("agent", "start")
        defer { _ = try? transferq("agent", "stop") }
        var samples: [Double] = []
        for number in 0..<rounds * 40 {
            try transferq("add", "small", smallFile, "--hold", "--tag", "try-\(number)")
            while try !output([self.transferq, "--store", store, "list", "--account", "large", "--json"]).contains("\"transferring\"") {}
            let start = ContinuousClock.now
            try transferq("now", "--tag", "try-\(number)")
            guard let arrival = await small.nextArrival() else { throw BenchmarkError.failed("No byte arrived") }
            samples.append(start.duration(to: arrival) / .milliseconds(1))
        }
        samples.sort()
        return [
            .init(name: "from transferq now to the first byte, ms", samples: samples, aim: ""),
            .init(
                name: "the 99th percentile of these \(samples.count) times, ms", samples: [samples[samples.count * 99 / 100]],
                aim: "under 100"),
        ]
    }
}
