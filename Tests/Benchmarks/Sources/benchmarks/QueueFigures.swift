import Foundation

/// Measures the queue without a network. Each run is a separate process. The measurements are:
///
/// - enqueueing many sessions, compared with raw inserts of the same rows
/// - enqueueing from one task and from many tasks, whose changes share commits
/// - the time between the end of a session and the start of the next one
/// - a folder with many files
/// - a queue with many sessions, with its storage folder on the disk and in memory
/// - operations on all sessions, and on a queue with many accounts
/// - single durable changes with SQLite alone, for comparison
struct QueueFigures {
    /// The samples of one measured value.
    struct Figure: Codable {
        var name: String
        var samples: [Double]
        /// The target for the value; empty for none. The table shows the target after the median.
        var aim: String

        var median: Double {
            let sorted = samples.sorted()
            return sorted.isEmpty ? .nan : sorted[sorted.count / 2]
        }
    }

    let program: String
    let rawInserts: String
    let rawCommits: String
    let work: String
    let rounds: Int
    let sessions: Int

    private var store: String { "\(work)/queue-store" }

    func run() throws -> [Figure] {
        var figures: [Figure] = []
        var enqueue: [Double] = []
        var raw: [Double] = []
        for round in 0...rounds {
            try clear()
            let ours = try values(["enqueue", store, "100000"])["seconds"]
            let theirs = try output([rawInserts, "\(store)/queue.sqlite", "\(work)/raw.sqlite"]).split(separator: " ").first.flatMap {
                Double($0)
            }
            guard let ours, let theirs else { throw BenchmarkError.failed("The time of enqueueing or of the raw inserts is missing") }
            // Round 0 is a warm-up and does not count.
            if round > 0 {
                enqueue.append(ours)
                raw.append(theirs)
            }
        }
        figures.append(Figure(name: "100,000 sessions in one call, s", samples: enqueue, aim: ""))
        figures.append(Figure(name: "raw inserts of the same rows, s", samples: raw, aim: ""))
        figures.append(Figure(name: "rate × raw inserts", samples: zip(enqueue, raw).map { $1 / $0 }, aim: "at least 0.5"))

        for (name, arguments) in [
            ("2,000 sessions one by one from 1 task, s", ["tasks", store, "2000", "1"]),
            ("2,000 sessions one by one from 100 tasks, s", ["tasks", store, "2000", "100"]),
        ] {
            figures.append(Figure(name: name, samples: try repeated(arguments, "seconds"), aim: ""))
        }
        figures.append(
            Figure(name: "from session to session, p50 ms", samples: try repeated(["gap", store, "500"], "gap p50 ms"), aim: "under 5"))

        try clear()
        for (name, value) in try values(["folder", store, "\(sessions)"]).sorted(by: { $0.key < $1.key }) {
            figures.append(
                Figure(name: "a folder of \(sessions) files: \(name)", samples: [value], aim: name == "peak MiB" ? "under 120" : ""))
        }
        figures += try figuresOfManySessions(in: work)
        for (measurement, what) in [("groups", "all of 100,000 sessions"), ("marked", "start priorities"), ("accounts", "10,000 accounts")]
        {
            try clear()
            figures += try values([measurement, store, "100000"]).sorted { $0.key < $1.key }.map {
                Figure(name: "\(what): \($0.key)", samples: [$0.value], aim: "")
            }
        }
        var commits: [String: [Double]] = [:]
        for _ in 0..<rounds {
            try clear()
            for (name, value) in try values(of: [rawCommits, "\(work)/raw.sqlite", "1000"]) { commits[name, default: []].append(value) }
        }
        for name in commits.keys.sorted() {
            figures.append(Figure(name: "one raw commit of a row, \(name) ms", samples: commits[name] ?? [], aim: ""))
        }
        try clear()
        // Repeat the measurements with a storage folder in memory, to see the times without the disk.
        if FileManager.default.isWritableFile(atPath: "/dev/shm") {
            let folder = "/dev/shm/transferkit-benchmark-\(ProcessInfo.processInfo.processIdentifier)"
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: folder) }
            figures += try figuresOfManySessions(in: folder, title: "in memory, ")
        }
        return figures
    }

    private func figuresOfManySessions(in folder: String, title: String = "") throws -> [Figure] {
        let store = "\(folder)/queue-store"
        try? FileManager.default.removeItem(atPath: store)
        defer { try? FileManager.default.removeItem(atPath: store) }
        _ = try values(["fill", store, "\(sessions)"])
        var opened: [String: [Double]] = [:]
        for measurement in ["open", "work"] {
            for _ in 0..<rounds {
                for (name, value) in try values([measurement, store, "1"]) { opened[name, default: []].append(value) }
            }
        }
        let aims = [
            "open s": "under 1", "open peak MiB": "under 120", "look up an index p99 ms": "under 5", "move, durable p99 ms": "under 5",
            "dispatch, from a free slot to the transport p99 ms": "under 5",
        ]
        return opened.keys.sorted().map { name in
            Figure(name: "\(sessions) sessions: \(title)\(name)", samples: opened[name] ?? [], aim: aims[name] ?? "")
        }
    }

    static func table(_ figures: [Figure]) -> String {
        let width = figures.map(\.name.count).max() ?? 0
        return figures.map {
            let median = String(format: "%.3f", $0.median)
            return "  \($0.name.padding(toLength: width, withPad: " ", startingAt: 0))  \(median)  \($0.aim)"
        }.joined(separator: "\n")
    }

    private func repeated(_ arguments: [String], _ name: String) throws -> [Double] {
        try (0..<rounds).map { _ in
            try clear()
            guard let value = try values(arguments)[name] else { throw BenchmarkError.failed("\(arguments) did not print \(name)") }
            return value
        }
    }

    private func clear() throws {
        for path in [store, "\(work)/raw.sqlite", "\(work)/raw.sqlite-wal", "\(work)/raw.sqlite-shm"] {
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    private func values(_ arguments: [String]) throws -> [String: Double] {
        try values(of: [program] + arguments)
    }

    private func values(of command: [String]) throws -> [String: Double] {
        var values: [String: Double] = [:]
        for line in try output(command).split(separator: "\n") {
            guard let space = line.lastIndex(of: " "), let value = Double(line[line.index(after: space)...]) else { continue }
            values[String(line[..<space])] = value
        }
        return values
    }
}
