import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferCore
import TransferKit

/// The program `transferq`, which the build puts next to the tests.
enum Commands {
    static let path = FilePath(
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().path
    ).appending("transferq").string

    /// - Parameter mergesErrors: Whether the output includes standard error.
    static func start(
        _ words: [String], store: FilePath, errors: FilePath = "/dev/null", mergesErrors: Bool = false
    ) throws -> StartedProgram {
        // The storage folder comes first, because arguments after -- are not options.
        let words = ["--store", store.string] + words
        guard mergesErrors else { return try StartedProgram(path, words, errors: errors) }
        return try StartedProgram("/bin/sh", ["-c", "exec \"$0\" \"$@\" 2>&1", path] + words)
    }

    static func run(_ words: [String], store: FilePath) async throws {
        let status = await end(of: try start(words, store: store))
        try #require(status == 0, "\(words) \(status ?? -1)")
    }

    /// - Returns: The exit status of the program; nil if a signal ended it.
    static func end(of program: StartedProgram) async -> Int32? {
        let end = await BlockingIO.run { program.waitForEnd() }
        return end.flatMap { $0.wasKilled ? nil : $0.status }
    }
}

final class LineReader {
    private let program: StartedProgram
    private var buffer = Data()

    init(_ program: StartedProgram) { self.program = program }

    /// Returns the next line; nil at the end of the output.
    func next() async throws -> String? {
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: buffer[..<end], as: UTF8.self)
                buffer = Data(buffer[(end + 1)...])
                return line
            }
            let program = program
            let bytes = try await BlockingIO.run { try program.read() }
            if bytes.isEmpty { return nil }
            buffer += bytes
        }
    }

    func object() async throws -> [String: Any] {
        let line = try #require(try await next(), "the output ended")
        return try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], "\(line)")
    }

    func revision() async throws -> Int { try #require(try await object()["revision"] as? Int) }
}
