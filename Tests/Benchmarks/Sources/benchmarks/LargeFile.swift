import Foundation

/// Compares `transferq run` with curl and optionally tuspy when they upload one large file from the page cache. The time of `transferq`
/// includes the writes to its database.
struct LargeFile {
    let programs: Programs
    let work: String
    let megabytes: Int
    let rounds: Int
    var server = TUSServer.sink
    /// The round-trip time in milliseconds; 0 for none.
    var roundTrip = 0
    /// The rate limit of each connection in bytes per second; 0 for none.
    var connectionRate = 0
    /// The number of segments in an additional measurement of `transferq`; 1 for no additional measurement.
    var segments = 1
    var includesTuspy = false

    func run() throws -> [Measurements] {
        let process = try server.start(programs)
        defer { server.stop(process) }
        let isDirect = roundTrip == 0 && connectionRate == 0
        let relay = isDirect ? nil : try Server(programs.relay, ["\(process.port)", "\(roundTrip / 2)", "\(connectionRate)"])
        defer { relay?.stop() }
        let port = relay?.port ?? process.port
        let file = "\(work)/large-file"
        try makeFile(file, megabytes: megabytes)
        defer { try? FileManager.default.removeItem(atPath: file) }

        let endpoint = "tus+http://127.0.0.1:\(port)/files/"
        var contenders: [(name: String, run: () throws -> ResourceUsage)] = [
            ("transferq run", { try programs.run(store: "\(work)/store-large", to: endpoint, adding: [file]) })
        ]
        if segments > 1 {
            let options = ["--parallel", "\(segments)"]
            contenders.append(
                (
                    "… in \(segments) segments",
                    { try programs.run(store: "\(work)/store-large", to: endpoint, adding: [file], options: options) }
                ))
        }
        if includesTuspy {
            contenders.append(
                ("tuspy", { try measure([programs.python, programs.tuspyUploads, "http://127.0.0.1:\(port)/files/", file]) }))
        }
        let curlByTUS = ("curl, POST and PATCH", { try measure([programs.curlTUS, "http://127.0.0.1:\(port)/files/", file]) })
        switch server {
        case .sink:
            // With a delay, the request that creates an upload takes a large part of the time. So the comparison also includes a client
            // that sends such a request.
            if roundTrip > 0 { contenders.append(curlByTUS) }
            contenders.append(
                (
                    "… by the IETF protocol",
                    {
                        try programs.run(
                            store: "\(work)/store-large-ietf", to: "rufh+http://127.0.0.1:\(port)/files/", adding: [file])
                    }
                ))
            contenders.append(
                ("curl -T", { try measure(["curl", "--silent", "--fail", "--upload-file", file, "http://127.0.0.1:\(port)/put"]) }))
        case .tuspyserver:
            contenders.append(curlByTUS)
        }

        var costs: [String: [ResourceUsage]] = [:]
        // Round 0 is a warm-up and does not count.
        for round in 0...rounds {
            for contender in contenders {
                let cost = try contender.run()
                server.empty()
                if round > 0 { costs[contender.name, default: []].append(cost) }
            }
        }
        return contenders.map {
            Measurements(benchmark: name, program: $0.name, megabytes: Double(megabytes), costs: costs[$0.name] ?? [])
        }
    }

    private var name: String {
        var name = "TUS, one file of \(megabytes) MiB, "
        name += roundTrip > 0 ? "\(roundTrip) ms round trip" : "loopback"
        if connectionRate > 0 { name += ", \(connectionRate >> 20) MiB/s for each connection" }
        return "\(name), \(server.rawValue)"
    }
}

/// Creates a file with incompressible content, and keeps it in the page cache.
func makeFile(_ path: String, megabytes: Int) throws {
    guard FileManager.default.createFile(atPath: path, contents: nil) else { throw BenchmarkError.failed("Cannot create \(path)") }
    let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    defer { try? handle.close() }
    var block = Data(count: 1 << 20)
    for index in 0..<block.count / 8 {
        withUnsafeBytes(of: UInt64.random(in: .min ... .max)) { block.replaceSubrange(index * 8..<index * 8 + 8, with: $0) }
    }
    for _ in 0..<megabytes { try handle.write(contentsOf: block) }
    // Without this call, the system might write the file to the disk during the measurement.
    try handle.synchronize()
}
