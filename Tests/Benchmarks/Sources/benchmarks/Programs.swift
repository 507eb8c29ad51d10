import Foundation

/// The paths of the measured programs, the programs used for comparison, and the servers.
struct Programs {
    let transferq: String
    let sink: String
    let relay: String
    let rawUploads: String
    let python: String
    let tuspyUploads: String
    /// A script that runs tuspyserver.
    let tusServer: String
    /// A script that uploads a file with curl over tus.
    let curlTUS: String
    /// A script that runs nginx. The tests also use this script.
    let nginxPut: String
    let sshd: String

    /// Measures one `transferq run` with a new storage folder. The run transfers one session with the given files.
    func run(store: String, to endpoint: String, adding files: [String], options: [String] = []) throws -> ResourceUsage {
        try run(store: store, account: [endpoint], adding: files, options: options)
    }

    /// - Parameter account: The arguments of `account add` after the account's name.
    func run(store: String, account: [String], adding files: [String], options: [String] = []) throws -> ResourceUsage {
        try? FileManager.default.removeItem(atPath: store)
        defer { try? FileManager.default.removeItem(atPath: store) }
        _ = try measure([transferq, "--store", store, "account", "add", "sink"] + account)
        let list = "\(store)-list"
        try Data(files.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: list))
        defer { try? FileManager.default.removeItem(atPath: list) }
        _ = try measure([transferq, "--store", store, "add", "sink", "-"] + options, input: list)
        return try measure([transferq, "--store", store, "run", "--progress", "none"])
    }
}
