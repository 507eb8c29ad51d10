import Foundation

/// One large file from the page cache over loopback to the sink: `transferq run`, store and all, in turn with `curl -T`.
struct LargeFile {
    let transferq: String
    let sink: String
    let work: String
    let megabytes: Int
    let rounds: Int

    func run() throws -> [Measurements] {
        let sink = try Sink(executable: sink)
        defer { sink.stop() }
        let file = "\(work)/large-file"
        try makeFile(file)
        defer { try? FileManager.default.removeItem(atPath: file) }

        var ours: [Cost] = []
        var peers: [Cost] = []
        // Round 0 warms both up and is not counted.
        for round in 0...rounds {
            let store = "\(work)/store-\(round)"
            try? FileManager.default.removeItem(atPath: store)
            _ = try measure([transferq, "--store", store, "account", "add", "sink", "tus+http://127.0.0.1:\(sink.port)/files/"])
            _ = try measure([transferq, "--store", store, "add", "sink", file])
            let our = try measure([transferq, "--store", store, "run", "--progress", "none"])
            let peer = try measure(["curl", "--silent", "--fail", "--upload-file", file, "http://127.0.0.1:\(sink.port)/put"])
            try? FileManager.default.removeItem(atPath: store)
            if round > 0 {
                ours.append(our)
                peers.append(peer)
            }
        }
        let name = "TUS, one file of \(megabytes) MiB, loopback, C sink"
        return [
            Measurements(benchmark: name, program: "transferq run", megabytes: megabytes, costs: ours),
            Measurements(benchmark: name, program: "curl -T", megabytes: megabytes, costs: peers),
        ]
    }

    /// Content that neither end can shorten, in the page cache.
    private func makeFile(_ path: String) throws {
        FileManager.default.createFile(atPath: path, contents: nil)
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        var block = Data(count: 1 << 20)
        for index in 0..<block.count / 8 {
            withUnsafeBytes(of: UInt64.random(in: .min ... .max)) { block.replaceSubrange(index * 8..<index * 8 + 8, with: $0) }
        }
        for _ in 0..<megabytes { try handle.write(contentsOf: block) }
    }
}
