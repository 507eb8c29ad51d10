import Foundation

var options = ["rounds": "5", "megabytes": "2048"]
var arguments = CommandLine.arguments.dropFirst()
while let argument = arguments.popFirst() {
    guard argument.hasPrefix("--"), let value = arguments.popFirst() else {
        print("usage: benchmarks --transferq FILE --sink FILE --work FOLDER --json FILE [--rounds N] [--megabytes N]")
        exit(2)
    }
    options[String(argument.dropFirst(2))] = value
}
guard
    let transferq = options["transferq"], let sink = options["sink"], let work = options["work"], let json = options["json"],
    let rounds = Int(options["rounds"] ?? ""), let megabytes = Int(options["megabytes"] ?? ""), rounds > 0, megabytes > 0
else {
    print("benchmarks: --transferq, --sink, --work and --json are needed, and numbers above 0")
    exit(2)
}

do {
    let results = try LargeFile(transferq: transferq, sink: sink, work: work, megabytes: megabytes, rounds: rounds).run()
    print(table(results))
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys]
    try encoder.encode(results).write(to: URL(fileURLWithPath: json))
    print("\nMedians of \(rounds) runs each, in turn. All figures: \(json)")
} catch {
    print("benchmarks: \(error)")
    exit(1)
}
