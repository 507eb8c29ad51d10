import Foundation

/// What TUS uploads are measured against.
enum TUSServer: String {
    /// The limit of any client: it takes bytes as fast as a socket gives them, and keeps none.
    case sink = "C sink"
    /// One that people use. Its files are in memory, as else its disk is what is measured.
    case tuspyserver

    /// Where a server of files keeps them.
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

    /// Drops what it has.
    func empty() {
        guard self == .tuspyserver, let names = try? FileManager.default.contentsOfDirectory(atPath: Self.folder) else { return }
        for name in names { try? FileManager.default.removeItem(atPath: "\(Self.folder)/\(name)") }
    }

    func stop(_ server: Server) {
        server.stop()
        if self == .tuspyserver { try? FileManager.default.removeItem(atPath: Self.folder) }
    }
}
