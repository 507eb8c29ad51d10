import Foundation
import ProcessFixture
import SystemPackage
import Testing
import TransferControl
import TransferCore
import TransferKit
import TransferWeb
import TransportTesting

@Suite struct PrometheusTests {
    @Test func `a Prometheus server reads the metrics, and the dashboard's expressions have results`() async throws {
        try await WebFixture.with { fixture in
            let reader = try await EventReader(fixture.client())
            let source = try fixture.file("source", size: 2_000)
            fixture.memory.failNext(with: TransferError(.permanent, .tooLarge, "Too large."), for: "bad")
            try await fixture.queue.start()
            for name in ["good", "bad"] {
                try await fixture.queue.add([.upload(items: [TransferItem(source, as: name)], to: "a")], at: nil, held: false)
            }
            _ = try await reader.events(upTo: "queueBecameIdle")
            // Keeps a session running, so that the account has a rate.
            let gate = fixture.memory.gate("running", atByte: 1_000_000)
            let large = try fixture.file("large", size: 3 << 20)
            try await fixture.queue.add([.upload(items: [TransferItem(large, as: "running")], to: "a")], at: nil, held: false)
            try await gate.reached()
            reader.disconnect()
            let root = FilePath(FileManager.default.currentDirectoryPath)
            let errors = fixture.folder.appending("errors")
            let program = try StartedProgram(
                "/usr/bin/python3",
                [
                    root.appending("Tests/TransferWebTests/Prometheus/scrape.py").string, "http://127.0.0.1:\(fixture.port)",
                    fixture.store.appending("web-read.token").string, root.appending("Samples/grafana-dashboard.json").string,
                    fixture.folder.string,
                ], errors: errors)
            let end = await BlockingIO.run { program.waitForEnd() }
            let message = try String(contentsOfFile: errors.string, encoding: .utf8)
            #expect(end?.status == 0, "\(message)")
        }
    }
}
