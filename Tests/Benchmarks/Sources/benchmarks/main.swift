import Foundation

var options = ["rounds": "5", "megabytes": "2048", "files": "5000", "sessions": "1000000", "only": ""]
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
    guard argument.hasPrefix("--"), let value = arguments.popFirst() else {
        print(
            "usage: benchmarks --NAME FILE for each program [--rounds N] [--megabytes N] [--files N] [--sessions N] [--only tus|small|path|http|sftp|queue|command]"
        )
        exit(2)
    }
    options[String(argument.dropFirst(2))] = value
}

@MainActor func file(_ name: String) -> String {
    guard let path = options[name] else {
        print("benchmarks: --\(name) is missing")
        exit(2)
    }
    return path
}

@MainActor func number(_ name: String) -> Int {
    guard let number = options[name].flatMap({ Int($0) }), number > 0 else {
        print("benchmarks: --\(name) must be a number above 0")
        exit(2)
    }
    return number
}

let programs = Programs(
    transferq: file("transferq"), sink: file("sink"), relay: file("relay"), rawUploads: file("raw-uploads"), python: file("python"),
    tuspyUploads: file("tuspy-uploads"), tusServer: file("tus-server"), curlTUS: file("curl-tus"), nginxPut: file("nginx-put"),
    sshd: file("sshd"))
let (work, rounds, megabytes, files) = (file("work"), number("rounds"), number("megabytes"), number("files"))

@MainActor func isWanted(_ name: String) -> Bool { ["", name].contains(options["only"]) }

do {
    struct Results: Codable {
        var programs: [Measurements] = []
        var queue: [QueueFigures.Figure] = []
        var command: [QueueFigures.Figure] = []
    }
    var results = Results()
    func show(_ measurements: [Measurements]) {
        results.programs += measurements
        print(table(measurements))
    }
    if isWanted("small") {
        show(try SmallFiles(programs: programs, work: work, count: files, rounds: rounds, roundTrip: 0).run())
        show(try SmallFiles(programs: programs, work: work, count: files, rounds: rounds, roundTrip: 0, server: .tuspyserver).run())
    }
    // Servers keep their files in memory. Without `hold-memory`, a virtual machine would return the memory of deleted files to its host,
    // and the next program would spend most of its time waiting for this memory.
    let memory = ["tus", "http", "sftp"].contains(where: isWanted) ? try Server(file("hold-memory"), ["\(4 * megabytes)"]) : nil
    defer { memory?.stop() }
    if isWanted("tus") {
        show(try LargeFile(programs: programs, work: work, megabytes: megabytes, rounds: rounds, includesTuspy: true).run())
        show(
            try LargeFile(
                programs: programs, work: work, megabytes: megabytes, rounds: rounds, server: .tuspyserver, includesTuspy: true
            ).run())
    }
    if isWanted("path") {
        // With a delay, clients that send one file after another would take minutes for all files. A tenth of the files gives the same
        // rates.
        show(try SmallFiles(programs: programs, work: work, count: max(1, files / 10), rounds: rounds, roundTrip: 50).run())
        // Without a rate limit, the round trip of the request that creates the upload takes most of the time. So also measure with a rate
        // limit.
        for rate in [0, 125 << 20] {
            show(
                try LargeFile(programs: programs, work: work, megabytes: 200, rounds: rounds, roundTrip: 50, connectionRate: rate).run())
        }
        show(
            try LargeFile(
                programs: programs, work: work, megabytes: 200, rounds: rounds, roundTrip: 50, connectionRate: 20 << 20, segments: 4
            ).run())
    }
    if isWanted("http") { show(try PlainHTTP(programs: programs, work: work, megabytes: megabytes, rounds: rounds).run()) }
    if isWanted("sftp") {
        let (near, far) = (
            SFTPFiles(programs: programs, work: work, rounds: rounds),
            SFTPFiles(programs: programs, work: work, rounds: rounds, roundTrip: 40)
        )
        show(try near.run(megabytes: megabytes / 2))
        show(try near.run(files: 2_000))
        show(try far.run(megabytes: 256))
        // With a delay, the transfer of 2,000 files would take too long. Fewer files give the same rates.
        show(try far.run(files: 200))
    }
    if isWanted("queue") {
        results.queue = try QueueFigures(
            program: file("queue"), rawInserts: file("raw-inserts"), rawCommits: file("raw-commits"), work: work, rounds: rounds,
            sessions: number("sessions")
        ).run()
        print("Queue, medians")
        print(QueueFigures.table(results.queue))
    }
    if isWanted("command") {
        results.command = try await CommandFigures(
            transferq: file("transferq"), queue: file("queue"), sink: file("sink"), work: work, rounds: rounds
        ).run()
        print("The command, medians")
        print(QueueFigures.table(results.command))
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    try encoder.encode(results).write(to: URL(fileURLWithPath: file("json")))
    print("\nMedians of \(rounds) alternating runs of each program. All figures: \(file("json"))")
} catch {
    print("benchmarks: \(error)")
    exit(1)
}
