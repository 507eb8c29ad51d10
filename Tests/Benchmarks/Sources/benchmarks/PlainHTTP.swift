import Foundation

/// Compares `transferq` with curl when they transfer one large file, by `PUT` to nginx and by `GET` from it. Only the storage folder
/// of `transferq` is on the disk: round 0 reads the source into the page cache, and all transferred files are written to memory.
struct PlainHTTP {
    let programs: Programs
    let work: String
    let megabytes: Int
    let rounds: Int

    private let folder = "/dev/shm/transferkit-benchmark-\(getpid())"

    func run() throws -> [Measurements] {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let nginx = try Server(programs.python, [programs.nginxPut, "\(folder)/server", "\(megabytes + 1)m"])
        defer { nginx.stop() }
        let file = "\(work)/large-file"
        try makeFile(file, megabytes: megabytes)
        defer { try? FileManager.default.removeItem(atPath: file) }
        let (url, store) = ("127.0.0.1:\(nginx.port)/", "\(work)/store-http")
        let stored = "\(folder)/server/files/large-file"
        let received = "\(folder)/received"
        try FileManager.default.createDirectory(atPath: received, withIntermediateDirectories: true)

        var costs: [String: [ResourceUsage]] = [:]
        func measureRound(_ name: String, _ round: Int, writing result: String, _ body: () throws -> ResourceUsage) throws {
            try? FileManager.default.removeItem(atPath: result)
            let cost = try body()
            guard try FileManager.default.attributesOfItem(atPath: result)[.size] as? Int == megabytes << 20 else {
                throw BenchmarkError.failed("\(name) did not write the whole file")
            }
            // Round 0 is a warm-up and does not count.
            if round > 0 { costs[name, default: []].append(cost) }
        }
        let source = "http://\(url)large-file"
        func download(_ options: [String]) throws -> ResourceUsage {
            try programs.run(
                store: store, to: "http+get://\(url)", adding: ["large-file"], options: ["--download", "--to", received] + options)
        }
        let uploads: [(String, () throws -> ResourceUsage)] = [
            ("put", { try programs.run(store: store, to: "http+put://\(url)", adding: [file]) }),
            ("curl -T", { try measure(["curl", "--silent", "--fail", "--upload-file", file, source]) }),
        ]
        let downloads: [(String, () throws -> ResourceUsage)] = [
            ("get", { try download([]) }), ("get in segments", { try download(["--parallel", "2"]) }),
            ("curl -o", { try measure(["curl", "--silent", "--fail", "--output", "\(received)/large-file", source]) }),
        ]
        for round in 0...rounds {
            // Reverse the order in every second round, so that a program does not always run after the same other program.
            let isReversed = !round.isMultiple(of: 2)
            for (name, body) in isReversed ? uploads.reversed() : uploads { try measureRound(name, round, writing: stored, body) }
            for (name, body) in isReversed ? downloads.reversed() : downloads {
                try measureRound(name, round, writing: "\(received)/large-file", body)
            }
        }
        func measurements(_ benchmark: String, _ name: String, _ program: String) -> Measurements {
            Measurements(
                benchmark: "\(benchmark) of \(megabytes) MiB, loopback, nginx, no disk", program: program,
                megabytes: Double(megabytes), costs: costs[name] ?? [])
        }
        return [
            measurements("PUT", "put", "transferq run"), measurements("PUT", "curl -T", "curl -T"),
            measurements("GET", "get", "transferq run"), measurements("GET", "get in segments", "… in 2 segments"),
            measurements("GET", "curl -o", "curl -o"),
        ]
    }
}
