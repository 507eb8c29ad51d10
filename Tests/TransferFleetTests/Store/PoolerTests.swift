import Foundation
import ProcessFixture
import Testing
import TransferFleet
import TransferKit

@Suite struct PoolerTests {
    private static let program = "/usr/sbin/pgbouncer"

    @Test(
        .enabled(if: FileManager.default.isExecutableFile(atPath: program), "PgBouncer is not installed"),
        arguments: ["transaction", "statement", "session"]
    ) func `a connection through PgBouncer is rejected`(mode: String) async throws {
        let fleet = try await FleetFixture()
        let folder = fleet.server.folder + "/pooler-\(mode)"
        let script = """
            mkdir '\(folder)' && cd '\(folder)'
            printf '%s\\n' '[databases]' '* = host=\(fleet.server.folder) user=owner' '[pgbouncer]' 'unix_socket_dir = \(folder)' \\
                'listen_port = 6432' 'auth_type = any' 'pool_mode = \(mode)' 'logfile = \(folder)/log' 'pidfile = \(folder)/pid' > configuration
            \(Self.program) -q configuration </dev/null & pooler=$!
            until \(PostgresServer.programs)/pg_isready -q -h '\(folder)' -p 6432 || ! kill -0 $pooler; do :; done
            echo ready; read -r line; kill -INT $pooler; wait $pooler
            """
        let words = PostgresServer.prefix + ["sh", "-c", script]
        let pooler = try StartedProgram(words[0], Array(words.dropFirst()))
        _ = try await BlockingIO.run { try pooler.read() }
        defer { pooler.closeInput() }
        let url = "postgresql://owner@/\(fleet.database)?host=\(folder)&port=6432"
        let sentence = "The connection goes through a pooler such as PgBouncer, which loses notifications. Connect to PostgreSQL directly."
        let status = await #expect(throws: QueueError.self) { try await Fleet(url, place: .anywhere).status() }
        #expect(status?.message == sentence)
        let creation = await #expect(throws: QueueError.self) { try await Fleet.create(at: url) }
        #expect(creation?.message == sentence)
        let member = FleetStore(try PostgresURL(url))
        let join = await #expect(throws: QueueError.self) {
            try await member.join(FleetMemberDescription(name: "m", identity: UUID().uuidString, slots: 1))
        }
        #expect(join?.message == sentence)
        #expect(try await fleet.fleet.members().isEmpty)
    }
}
