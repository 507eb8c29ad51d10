import Foundation

/// Compares `transferq` with hand-written requests and tuspy when they upload many small files, over loopback or a path with a delay.
/// `transferq` sends them in one durable session.
struct SmallFiles {
    static let size = 4_096
    /// The number of connections of the hand-written client. By default, a session also has this number of small files in flight.
    static let connections = "6"

    let programs: Programs
    let work: String
    let count: Int
    let rounds: Int
    /// The round-trip time in milliseconds; 0 for none.
    let roundTrip: Int
    var server = TUSServer.sink

    func run() throws -> [Measurements] {
        let process = try server.start(programs)
        defer { server.stop(process) }
        let relay = roundTrip > 0 ? try Server(programs.relay, ["\(process.port)", "\(roundTrip / 2)"]) : nil
        defer { relay?.stop() }
        let port = relay?.port ?? process.port
        let folder = "\(work)/small-files"
        try makeFiles(folder)
        defer { try? FileManager.default.removeItem(atPath: folder) }

        var costs: [String: [ResourceUsage]] = [:]
        let names = ["transferq run", "tuspy", "POST, PATCH × 1", "POST × \(Self.connections)"]
        // Round 0 is a warm-up and does not count.
        for round in 0...rounds {
            let store = "\(work)/store-small"
            let our = try programs.run(store: store, to: "tus+http://127.0.0.1:\(port)/files/", adding: files(of: folder))
            let peers = [
                try measure([programs.python, programs.tuspyUploads, "http://127.0.0.1:\(port)/files/", folder]),
                try measure([programs.rawUploads, "\(port)", folder, "\(Self.size)", "1", "pair"]),
                try measure([programs.rawUploads, "\(port)", folder, "\(Self.size)", Self.connections, "single"]),
            ]
            server.empty()
            guard round > 0 else { continue }
            for (name, cost) in zip(names, [our] + peers) { costs[name, default: []].append(cost) }
        }
        let path = roundTrip > 0 ? "\(roundTrip) ms round trip" : "loopback"
        return names.map {
            Measurements(
                benchmark: "TUS, \(count) files of 4 KiB in one session, \(path), \(server.rawValue)", program: $0,
                megabytes: Double(count * Self.size) / 1_048_576, costs: costs[$0] ?? [])
        }
    }

    private func files(of folder: String) -> [String] { (0..<count).map { "\(folder)/\($0)" } }

    private func makeFiles(_ folder: String) throws {
        try? FileManager.default.removeItem(atPath: folder)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        var content = Data(repeating: 7, count: Self.size)
        for (index, file) in files(of: folder).enumerated() {
            withUnsafeBytes(of: index) { content.replaceSubrange(0..<8, with: $0) }
            try content.write(to: URL(fileURLWithPath: file))
        }
    }
}
