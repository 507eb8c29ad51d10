import Foundation

var options = ["rounds": "5", "megabytes": "2048", "sessions": "1000000", "only": ""]
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
    guard argument.hasPrefix("--"), let value = arguments.popFirst() else {
        print(
            "usage: benchmarks --transferq FILE --sink FILE --queue FILE --raw-inserts FILE --work FOLDER --json FILE [--rounds N] [--megabytes N] [--sessions N] [--only tus|queue]"
        )
        exit(2)
    }
    options[String(argument.dropFirst(2))] = value
}
guard
    let transferq = options["transferq"], let sink = options["sink"], let queue = options["queue"], let raw = options["raw-inserts"],
    let work = options["work"], let json = options["json"],
    let rounds = Int(options["rounds"] ?? ""), let megabytes = Int(options["megabytes"] ?? ""), rounds > 0, megabytes > 0,
    let sessions = Int(options["sessions"] ?? ""), sessions > 0
else {
    print("benchmarks: --transferq, --sink, --queue, --raw-inserts, --work and --json are needed, and numbers above 0")
    exit(2)
}

do {
    struct Results: Codable {
        var programs: [Measurements] = []
        var queue: [QueueFigures.Figure] = []
    }
    var results = Results()
    if options["only"] != "queue" {
        results.programs = try LargeFile(transferq: transferq, sink: sink, work: work, megabytes: megabytes, rounds: rounds).run()
        print(table(results.programs))
    }
    if options["only"] != "tus" {
        results.queue = try QueueFigures(program: queue, rawInserts: raw, work: work, rounds: rounds, sessions: sessions).run()
        print("Queue, medians")
        print(QueueFigures.table(results.queue))
    }
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    try encoder.encode(results).write(to: URL(fileURLWithPath: json))
    print("\nMedians of \(rounds) runs each, in turn. All figures: \(json)")
} catch {
    print("benchmarks: \(error)")
    exit(1)
}
