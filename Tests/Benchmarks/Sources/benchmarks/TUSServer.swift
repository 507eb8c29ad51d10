import Foundation

enum TUSServer: String {
    /// Receives bytes as fast as a socket delivers them, and discards them. This server gives an upper bound for the speed of any client.
    case sink = "C sink"
    /// A common server. Its files are in memory, so the speed of the disk has no effect.
    case tuspyserver

    private static let folder = "/dev/shm/transferkit-benchmark"

    func start(_ programs: Programs) throws -> Server {
        switch self {
        case .sink: return try Server(programs.sink, [])
        case .tuspyserver:
            empty()
            try FileManager.default.createDirectory(atPath: Self.folder, withIntermediateDirectories: true)
            return try Server(programs.python, [programs.tusServer, Self.folder])
        }
    }

    func empty() {
        guard self == .tuspyserver, let names = try? FileManager.default.contentsOfDirectory(atPath: Self.folder) else { return }
        for name in names { try? FileManager.default.removeItem(atPath: "\(Self.folder)/\(name)") }
    }

    func stop(_ server: Server) {
        server.stop()
        if self == .tuspyserver { try? FileManager.default.removeItem(atPath: Self.folder) }
    }
}
