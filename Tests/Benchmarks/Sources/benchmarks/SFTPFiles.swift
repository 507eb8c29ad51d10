import Foundation

/// Compares `transferq` with common SFTP clients when they upload to an OpenSSH server and download from it. All transferred files are in
/// memory; only the storage folder of `transferq` is on the disk.
struct SFTPFiles {
    let programs: Programs
    let work: String
    let rounds: Int
    /// The round-trip time in milliseconds; 0 for none.
    var roundTrip = 0

    private let folder = "/dev/shm/transferkit-benchmark-\(getpid())"
    private var key: String { "\(folder)/sshd/key" }
    private var knownHosts: String { "\(folder)/known_hosts" }

    private struct Contender {
        let name: String
        /// Uploads the files in the local folder `path`, or downloads the files in the server's folder `path`.
        let run: (_ path: String, _ isUpload: Bool) throws -> ResourceUsage
    }

    /// Measures both directions with one file of `megabytes` MiB, or with `files` files of 4 KiB.
    func run(megabytes: Int? = nil, files: Int = 0) throws -> [Measurements] {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let server = try Server(programs.python, [programs.sshd, "\(folder)/sshd"])
        defer { server.stop() }
        let relay = roundTrip > 0 ? try Server(programs.relay, ["\(server.port)", "\(roundTrip / 2)"]) : nil
        defer { relay?.stop() }
        let port = relay?.port ?? server.port
        let hosts = try String(contentsOfFile: "\(folder)/sshd/known_hosts", encoding: .utf8)
        try hosts.replacingOccurrences(of: ":\(server.port)", with: ":\(port)")
            .write(toFile: knownHosts, atomically: true, encoding: .utf8)

        try FileManager.default.createDirectory(atPath: "\(folder)/local/files", withIntermediateDirectories: true)
        if let megabytes {
            try makeFile("\(folder)/local/files/large", megabytes: megabytes)
        } else {
            for number in 0..<files {
                try Data(repeating: 7, count: 4_096).write(to: URL(fileURLWithPath: "\(folder)/local/files/\(number)"))
            }
        }
        let path = roundTrip > 0 ? "\(roundTrip) ms round trip" : "loopback"
        let what = megabytes.map { "one file of \($0) MiB" } ?? "\(files) files of 4 KiB"
        let size = megabytes.map(Double.init) ?? Double(files * 4_096) / 1_048_576
        return try [true, false].flatMap { isUpload in
            let contenders = contenders(port: port, isLarge: megabytes != nil, isUpload: isUpload)
            var costs: [String: [ResourceUsage]] = [:]
            for round in 0...rounds {
                for contender in contenders {
                    let target = isUpload ? "\(folder)/remote" : "\(folder)/received"
                    try? FileManager.default.removeItem(atPath: target)
                    try FileManager.default.createDirectory(atPath: "\(target)/files", withIntermediateDirectories: true)
                    let cost = try contender.run("\(folder)/\(isUpload ? "local" : "remote")/files", isUpload)
                    let found = try FileManager.default.contentsOfDirectory(atPath: "\(target)/files").count
                    guard found == (megabytes == nil ? files : 1) else {
                        throw BenchmarkError.failed("\(contender.name) transferred \(found) files")
                    }
                    // Round 0 is a warm-up and does not count.
                    if round > 0 { costs[contender.name, default: []].append(cost) }
                }
            }
            return contenders.map {
                Measurements(
                    benchmark: "SFTP, \(what) \(isUpload ? "up" : "down"), \(path), OpenSSH server, files in memory", program: $0.name,
                    megabytes: size, costs: costs[$0.name] ?? [])
            }
        }
    }

    private func contenders(port: Int, isLarge: Bool, isUpload: Bool) -> [Contender] {
        let user = NSUserName()
        let ssh = ["-o", "UserKnownHostsFile=\(knownHosts)", "-o", "BatchMode=yes", "-i", key, "-c", "aes128-ctr"]
        let remote = "\(folder)/remote", received = "\(folder)/received"
        func transferq(_ name: String, _ settings: [String] = [], _ options: [String] = []) -> Contender {
            Contender(name: name) { path, isUpload in
                let account = ["sftp://\(user)@127.0.0.1:\(port)\(remote)/", "--identity", key, "--known-hosts", knownHosts] + settings
                return isUpload
                    ? try programs.run(store: "\(work)/store-sftp", account: account, adding: [path], options: options)
                    : try programs.run(
                        store: "\(work)/store-sftp", account: account,
                        adding: try FileManager.default.contentsOfDirectory(atPath: path).map { "files/\($0)" },
                        options: ["--download", "--to", "\(received)/files"] + options)
            }
        }
        // More connections than cores help only if the connections wait for the network.
        let count = roundTrip > 0 ? 4 : 2
        let parallel = transferq("… on \(count) connections", ["--setting", "maxConnections=\(count)"], ["--parallel", "\(count)"])
        // Like most clients, this variant writes directly to the file with the final name, and does not sync it.
        let plain = transferq("… plain", ["--setting", "partFiles=false", "--setting", "sync=false"], ["--overwrite", "always"])
        let ours = [transferq("transferq run")] + (isLarge ? [parallel] : isUpload ? [plain] : [])
        let peers = [
            Contender(name: "curl") { path, isUpload in
                let config = "\(folder)/curl-config"
                let far = "sftp://\(user)@127.0.0.1:\(port)"
                try FileManager.default.contentsOfDirectory(atPath: path).map { name in
                    isUpload
                        ? "upload-file = \(path)/\(name)\nurl = \(far)\(remote)/files/\n"
                        : "output = \(received)/files/\(name)\nurl = \(far)\(path)/\(name)\n"
                }.joined().write(toFile: config, atomically: true, encoding: .utf8)
                // curl can't use the known hosts file of the benchmark, because curl reads only the user's file. Therefore, `--insecure`
                // disables the host key check.
                let flags = ["--disable", "--silent", "--show-error", "--insecure", "--key", key, "--pubkey", "\(key).pub"]
                return try measure(["curl"] + flags + ["--config", config])
            },
            Contender(name: "rclone") { path, isUpload in
                let far =
                    ":sftp,host=127.0.0.1,port=\(port),user=\(user),key_file=\(key):\(isUpload ? remote : path)\(isUpload ? "/files" : "")"
                let flags = ["--config", "/dev/null", "--quiet", "--sftp-disable-hashcheck", "--ignore-checksum", "--transfers", "8"]
                return try measure(["rclone", "copy"] + flags + (isUpload ? [path, far] : [far, "\(received)/files"]))
            },
            Contender(name: "lftp") { path, isUpload in
                let connect = "set sftp:connect-program \"ssh -a -x \(ssh.joined(separator: " "))\"; set net:max-retries 1"
                let mirror = isUpload ? "mirror -R -P 4 \(path) \(remote)/files" : "mirror -P 4 \(path) \(received)/files"
                return try measure(["lftp", "-e", "\(connect); \(mirror); bye", "sftp://\(user):x@127.0.0.1:\(port)"])
            },
            Contender(name: "OpenSSH sftp") { path, isUpload in
                let batch = "\(folder)/batch"
                try (isUpload ? "put \(path)/* \(remote)/files/\n" : "get \(path)/* \(received)/files/\n")
                    .write(toFile: batch, atomically: true, encoding: .utf8)
                return try measure(["sftp", "-q", "-b", batch, "-P", "\(port)"] + ssh + ["\(user)@127.0.0.1"])
            },
        ]
        // With a delay, curl needs minutes for a large file, because it sends one request at a time.
        return ours + peers.filter { $0.name != "curl" || !isLarge || roundTrip == 0 }
    }
}
