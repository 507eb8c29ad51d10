import Foundation
import InMemoryTracing
import TUSLoopback
import Testing
import Tracing
import TransferCore
import TransferKit
import TransportTUS

@Suite struct SpanTests {
    /// A process can have only one tracer, so the test runs in a separate process.
    @Test func `requests belong to attempts, and attempts to sessions`() async throws {
        await #expect(processExitsWith: .success) {
            let tracer = InMemoryTracer()
            InstrumentationSystem.bootstrap(tracer)
            let interop = try InteropFixture()
            let server = interop.loopbackServer(LoopbackOptions(maximumSize: 500_000))
            let queue = try await interop.openQueue(
                Account("real", endpoints: [.tus(try await server.start().absoluteString)]), transports: [TUSTransport()])
            try await queue.start()
            let files = try ["a", "b"].map { try interop.file($0, size: 300_000) }
            let good = try await queue.enqueue(.upload(files, to: "real"))
            #expect(try await good.value.state == .completed)
            let large = try await queue.enqueue(.upload([interop.file("c", size: 600_000)], to: "real"))
            await #expect(throws: (any Error).self) { try await large.value }
            await queue.shutdown()
            await server.stop()

            let spans = tracer.finishedSpans
            #expect(tracer.activeSpans.isEmpty)
            for (session, count, outcome) in [(good, 2, "completed"), (large, 1, "failed")] {
                let own = spans.filter { $0.attributes.get("transferkit.session") == .string("\(session.id)") }
                let run = try #require(own.first { $0.operationName == "transferkit.session" })
                #expect(run.attributes.get("transferkit.outcome") == .string(outcome) && run.errors.isEmpty == (outcome == "completed"))
                let attempts = own.filter { $0.operationName == "transferkit.attempt" }
                #expect(attempts.count == count && attempts.allSatisfy { $0.parentSpanID == run.spanID && $0.traceID == run.traceID })
                #expect(attempts.allSatisfy { $0.attributes.get("transferkit.transport") == .string("tus") })
                #expect(attempts.allSatisfy { $0.errors.isEmpty == (outcome == "completed") })
                let requests = spans.filter { span in span.kind == .client && attempts.contains { $0.spanID == span.parentSpanID } }
                // The server's limit excludes the large file, so no request creates it.
                let hasPOST = requests.contains { $0.operationName == "POST" }
                #expect(hasPOST == (outcome == "completed"), "\(spans.map(\.operationName))")
                #expect(requests.allSatisfy { $0.attributes.get("http.response.status_code") != nil })
            }
        }
    }
}
