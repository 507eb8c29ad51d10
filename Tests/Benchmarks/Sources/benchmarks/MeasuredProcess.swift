import Foundation
import Glibc

/// The resources that one run of a program used, including those of the child processes for which the program waited.
struct ResourceUsage: Codable {
    var wallSeconds: Double
    /// The user and system time of all these processes.
    var cpuSeconds: Double
    /// The peak memory of the largest of these processes, in KiB.
    var peakKiB: Int
}

enum BenchmarkError: Error, CustomStringConvertible {
    case failed(String)

    var description: String {
        switch self {
        case .failed(let what): what
        }
    }
}

/// Runs a program to its end, with the file `input` as its standard input, and measures the resources that the program uses.
func measure(_ arguments: [String], input: String = "/dev/null") throws -> ResourceUsage {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, input, O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
    var pointers = arguments.map { strdup($0) }
    pointers.append(nil)
    defer { pointers.forEach { free($0) } }
    var child = pid_t()
    let start = ContinuousClock.now
    let code = posix_spawnp(&child, arguments[0], &actions, nil, pointers, environ)
    guard code == 0 else { throw BenchmarkError.failed("Cannot start \(arguments[0]): \(String(cString: strerror(code)))") }
    var status: CInt = 0
    var usage = rusage()
    while wait4(child, &status, 0, &usage) < 0 {
        guard errno == EINTR else { throw BenchmarkError.failed("Cannot wait for \(arguments[0])") }
    }
    let wall = start.duration(to: .now)
    guard status == 0 else { throw BenchmarkError.failed("\(arguments.joined(separator: " ")) ended with wait status \(status)") }
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return ResourceUsage(
        wallSeconds: Double(wall.components.seconds) + Double(wall.components.attoseconds) / 1e18,
        cpuSeconds: seconds(usage.ru_utime) + seconds(usage.ru_stime), peakKiB: usage.ru_maxrss)
}

/// Runs a program until it exits, and returns its standard output.
func output(_ arguments: [String]) throws -> String {
    let process = Process()
    let output = Pipe()
    process.executableURL = URL(fileURLWithPath: arguments[0])
    process.arguments = Array(arguments.dropFirst())
    process.standardOutput = output
    try process.run()
    let text = output.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    guard process.terminationStatus == 0 else {
        throw BenchmarkError.failed("\(arguments.joined(separator: " ")) exited with \(process.terminationStatus)")
    }
    return String(decoding: text, as: UTF8.self)
}

/// A program that runs during a benchmark, usually a server. It prints its port, or another number, when it is ready.
final class Server {
    let port: Int
    private let process = Process()
    /// The program's standard input. It stays open, because some programs exit when their standard input ends.
    private let input = Pipe()

    init(_ executable: String, _ arguments: [String]) throws {
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: executable)
        process.arguments = arguments
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        let line = String(decoding: output.fileHandleForReading.availableData, as: UTF8.self)
        guard let port = Int(line.trimmingCharacters(in: .whitespacesAndNewlines)) else {
            throw BenchmarkError.failed("\(executable) did not print its port: \(line)")
        }
        self.port = port
    }

    func stop() {
        // Sends SIGKILL, because the process may have inherited a mask that blocks other signals.
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }
}
