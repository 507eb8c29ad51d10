import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferKit

/// A process that serves the web page of a fleet.
struct FleetWeb {
    /// The printed URL, with the token.
    let url: String
    /// The URL without a path.
    let site: String
    let token: String
    private let folder: URL
    private let process: StartedProgram

    init(of fleet: FleetFixture) async throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "fleet-web-\(UUID().uuidString)")
        let program = FilePath(MemberFixture.program).removingLastComponent().appending("transferq").string
        // Even with options before the command `web`, the page must show the fleet, not a local queue.
        let process = try StartedProgram(program, ["--store", folder.path, "--fleet", fleet.url, "web", "--listen", "127.0.0.1:0"])
        self.process = process
        do {
            url = try await BlockingIO.run { String(decoding: try process.read(), as: UTF8.self) }.trimmingCharacters(in: .newlines)
            site = "http://127.0.0.1:\(try #require(URL(string: url)?.port))"
            token = try String(contentsOf: folder.appending(path: "web.token"), encoding: .utf8).trimmingCharacters(in: .newlines)
        } catch {
            process.kill()
            throw error
        }
    }

    func stop() {
        process.kill()
        try? FileManager.default.removeItem(at: folder)
    }
}
