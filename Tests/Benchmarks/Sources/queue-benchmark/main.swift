import Foundation
import Logging
import SystemPackage
import TransferCore
import TransferKit

// Performs one measurement of the queue, and prints lines of the form "name value". Each measurement runs in its own process, so that the
// measured memory and time do not include other measurements.
let arguments = Array(CommandLine.arguments.dropFirst())
guard arguments.count >= 3, let count = Int(arguments[2]) else {
    print("usage: queue-benchmark enqueue|tasks|fill|open|work|gap|folder|groups|marked|accounts STORE COUNT [TASKS]")
    exit(2)
}
// Discards the log messages about the start and the end of each session, so that the measured times don't include them.
LoggingSystem.bootstrap { _ in SwiftLogNoOpLogHandler() }
let store = FilePath(arguments[1])
let file = store.removingLastComponent().appending("queue-item")
try Data(repeating: 7, count: 4_096).write(to: URL(fileURLWithPath: file.string))

func open() async throws -> TransferQueue {
    let queue = try await TransferQueue(storage: .folder(store), transports: [InstantTransport.shared])
    try await queue.save(Account("instant", endpoints: [Endpoint(transport: "instant", address: "instant://here/")]))
    return queue
}

func requests(_ count: Int) throws -> [SessionRequest] {
    try (0..<count).map { _ in try .upload([file], to: "instant") }
}

func time(_ body: () async throws -> Void) async rethrows -> Double {
    let start = ContinuousClock.now
    try await body()
    return start.duration(to: .now) / .seconds(1)
}

func report(_ name: String, _ value: Double) {
    print(name, value)
}

func reportPercentiles(_ name: String, _ samples: [Double]) {
    let sorted = samples.sorted()
    report("\(name) p50 ms", sorted[sorted.count / 2] * 1_000)
    report("\(name) p99 ms", sorted[min(sorted.count - 1, sorted.count * 99 / 100)] * 1_000)
}

/// Returns the peak resident memory in MiB, from proc_pid_status(5).
func peakMiB() -> Double {
    let status = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("VmHWM:") } ?? ""
    return (line.split(separator: " ").compactMap { Double($0) }.first ?? 0) / 1_024
}

switch arguments[0] {
case "enqueue":
    let queue = try await open()
    let batch = try requests(count)
    report("seconds", try await time { try await queue.enqueue(batch) })
    await queue.shutdown()
case "tasks":
    let tasks = arguments.count > 3 ? Int(arguments[3]) ?? 1 : 1
    let queue = try await open()
    let request = try requests(1)[0]
    let seconds = try await time {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<tasks {
                group.addTask {
                    for _ in 0..<count / tasks {
                        var request = request
                        request.id = SessionID()
                        try await queue.enqueue(request)
                    }
                }
            }
            try await group.waitForAll()
        }
    }
    report("seconds", seconds)
    await queue.shutdown()
case "fill":
    let queue = try await open()
    for start in stride(from: 0, to: count, by: 50_000) { try await queue.enqueue(try requests(min(50_000, count - start))) }
    await queue.shutdown()
case "open":
    var queue: TransferQueue?
    report("open s", try await time { queue = try await TransferQueue(storage: .folder(store), transports: [InstantTransport.shared]) })
    report("open peak MiB", peakMiB())
    await queue?.shutdown()
case "work":
    // Measures operations on a queue that already contains all sessions.
    let queue = try await TransferQueue(storage: .folder(store), transports: [InstantTransport.shared])
    let total = await queue.status().sessions
    var samples: [Double] = []
    for _ in 0..<1_000 {
        let index = Int.random(in: 0..<total)
        samples.append(try await time { _ = try await queue.sessions(index..<index + 1) })
    }
    reportPercentiles("look up an index", samples)
    samples = []
    for _ in 0..<1_000 {
        let (from, to) = (Int.random(in: 0..<total), Int.random(in: 0..<total))
        samples.append(try await time { try await queue.move(.at(from), to: .index(to)) })
    }
    reportPercentiles("move, durable", samples)
    // For each sample, raises the session limit by one, so that one more session becomes active and starts its file.
    InstantTransport.shared.keepsFilesInFlight = true
    var startTimes = InstantTransport.shared.startTimes
    samples = []
    try await queue.setMaxConcurrentSessions(1)
    try await queue.start()
    _ = await startTimes.next()
    for limit in 2...400 {
        let start = ContinuousClock.now
        try await queue.setMaxConcurrentSessions(limit)
        if let started = await startTimes.next() { samples.append(start.duration(to: started) / .seconds(1)) }
    }
    reportPercentiles("dispatch, from a free slot to the transport", samples)
    report("peak MiB", peakMiB())
    await queue.shutdown()
case "gap":
    let queue = try await open()
    try await queue.enqueue(try requests(count))
    try await queue.start()
    await queue.waitUntilIdle()
    reportPercentiles("gap", InstantTransport.shared.gaps)
    await queue.shutdown()
case "folder":
    // Uploads a folder with COUNT files, 1,000 in each subfolder, in one session.
    let tree = store.removingLastComponent().appending("queue-folder")
    let manager = FileManager.default
    try? manager.removeItem(atPath: tree.string)
    for number in 0..<count {
        let folder = tree.appending("folder-\(number / 1_000)")
        if number.isMultiple(of: 1_000) { try manager.createDirectory(atPath: folder.string, withIntermediateDirectories: true) }
        let file = try FileDescriptor.open(folder.appending("file-\(number)"), .writeOnly, options: [.create], permissions: .ownerReadWrite)
        try file.close()
    }
    let queue = try await open()
    let begun = ContinuousClock.now
    let session = try await queue.enqueue(.upload([tree], to: "instant"))
    try await queue.start()
    await queue.waitUntilIdle()
    let ended = ContinuousClock.now
    let status = try await session.status
    guard status.state == .completed, status.statistics.filesDone == count, let first = InstantTransport.shared.firstStart else {
        print("queue-benchmark: the folder did not arrive: \(status)")
        exit(1)
    }
    report("read s", begun.duration(to: first) / .seconds(1))
    report("all files transferred and stored s", first.duration(to: ended) / .seconds(1))
    report("peak MiB", peakMiB())
    await queue.shutdown()
    try manager.removeItem(atPath: tree.string)
case "groups":
    // Measures each operation on all sessions of a stopped queue, in one call.
    let queue = try await open()
    try await queue.enqueue(try requests(count))
    let operations: [(String, () async throws -> [SessionID])] = [
        ("hold", { try await queue.apply(.hold, to: .all) }), ("release", { try await queue.apply(.release, to: .all) }),
        ("runNext", { try await queue.apply(.runNext, to: .all) }), ("run", { try await queue.apply(.run(), to: .all) }),
        ("yield", { try await queue.apply(.yield, to: .all) }), ("cancel", { try await queue.apply(.cancel(), to: .all) }),
        ("retry", { try await queue.apply(.retry, to: .all) }),
        ("update tags", { try await queue.apply(.update(SessionUpdate(tags: ["a"])), to: .all) }),
        (
            "move a tenth to the end",
            { try await queue.apply(.move(to: .end), to: .sessions(Array(await queue.sessionIDs().prefix(count / 10)))) }
        ),
        ("remove", { try await queue.apply(.remove(), to: .all) }),
    ]
    for (name, operation) in operations { report("\(name) s", try await time { _ = try await operation() }) }
    let left = await queue.status().sessions
    precondition(left == 0, "All sessions must be removed")
    await queue.shutdown()
case "marked":
    // Opens a queue in which all sessions have a start priority.
    var queue = try await open()
    try await queue.enqueue(try requests(count))
    _ = try await queue.apply(.runNext, to: .all)
    await queue.shutdown()
    let start = ContinuousClock.now
    queue = try await open()
    report("open with a start priority on \(count) sessions s", start.duration(to: .now) / .seconds(1))
    await queue.shutdown()
case "accounts":
    // Distributes COUNT sessions over COUNT / 10 accounts. Operations must not be slower with many accounts.
    let queue = try await open()
    let accounts = max(1, count / 10)
    for number in 0..<accounts {
        try await queue.save(Account("a\(number)", endpoints: [Endpoint(transport: "instant", address: "instant://host\(number)/")]))
    }
    for start in stride(from: 0, to: count, by: 50_000) {
        try await queue.enqueue(
            try (start..<min(start + 50_000, count)).map { try .upload([file], to: "a\(($0 &* 7_919) % accounts)") })
    }
    report("list all s", try await time { _ = try await queue.sessions() })
    InstantTransport.shared.keepsFilesInFlight = true
    var startTimes = InstantTransport.shared.startTimes
    try await queue.setMaxConcurrentSessions(1)
    try await queue.start()
    _ = await startTimes.next()
    report("list all of a running queue s", try await time { _ = try await queue.sessions() })
    var samples: [Double] = []
    for limit in 2...400 {
        let start = ContinuousClock.now
        try await queue.setMaxConcurrentSessions(limit)
        if let started = await startTimes.next() { samples.append(start.duration(to: started) / .seconds(1)) }
    }
    reportPercentiles("dispatch, from a free slot to the transport", samples)
    samples = []
    for number in 0..<1_000 {
        samples.append(try await time { try await queue.setRateLimit(number.isMultiple(of: 2) ? nil : 1 << 40) })
    }
    reportPercentiles("a change of the queue, durable", samples)
    // From now on, only one account can start sessions, because the transport of the other accounts is missing.
    for number in 1..<accounts {
        try await queue.save(Account("a\(number)", endpoints: [Endpoint(transport: "missing", address: "missing://host\(number)/")]))
    }
    let startable = try await queue.sessions(in: .account("a0")).map(\.id)
    samples = []
    for _ in 0..<100 {
        for id in startable { samples.append(try await time { _ = try await queue.status(of: id) }) }
    }
    reportPercentiles("status of a session, only one account can start", samples)
    samples = []
    for number in 0..<1_000 {
        samples.append(try await time { try await queue.setRateLimit(number.isMultiple(of: 2) ? nil : 1 << 40) })
    }
    reportPercentiles("a change of the queue, durable, only one account can start", samples)
    report("list all, only one account can start s", try await time { _ = try await queue.sessions() })
    report("peak MiB", peakMiB())
    await queue.shutdown()
default:
    print("queue-benchmark: there is no measurement \"\(arguments[0])\"")
    exit(2)
}
