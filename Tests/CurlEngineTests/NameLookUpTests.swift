#if os(Linux)
    import CurlEngine
    import ScriptedHTTP
    import Testing
    import TransportSupport

    /// Runs the suite below in a process in which name look-ups can hang.
    @Suite(.timeLimit(.minutes(10))) struct NameLookUpTests {
        @Test(.enabled(if: !HangingResolver.isPresent, "This is the process with the hanging resolver."))
        func hangingLookUpsDoNotDelayOtherWork() async throws {
            // This call blocks while two child processes run, so it needs a separate thread.
            let (status, output) = try await WorkerThreads(limit: 1).run { try HangingResolver.run(testsNamed: "LookUpsThatHang") }
            #expect(status == 0, "\(output)")
            #expect(output.contains("Test run with 4 tests"), "\(output)")
            #expect(!output.contains("skipped"), "\(output)")
        }
    }

    /// The look-ups in these tests never end, so a test hangs if the engine waits for a look-up.
    @Suite(
        .timeLimit(.minutes(10)), .enabled(if: HangingResolver.isPresent, "NameLookUpTests runs this suite with the hanging resolver.")
    )
    struct LookUpsThatHang {
        /// Returns a name whose look-up hangs, and a stream that ends when the look-up starts.
        private func hangingName(_ label: String) -> (name: String, lookUpStarts: AsyncStream<Void>) {
            let name = "\(label).hangs.invalid"
            let (lookUpStarts, hasStarted) = AsyncStream.makeStream(of: Void.self)
            HangingResolver.onLookUp(of: name) { hasStarted.finish() }
            return (name, lookUpStarts)
        }

        @Test func cancellationDoesNotWaitForLookUp() async throws {
            let (name, lookUpStarts) = hangingName("cancelled")
            let server = try ScriptedServer { _, _ in [.answer(200)] }
            let engine = CurlEngine()
            let task = Task { try await engine.perform(HTTPRequest(method: "GET", url: "http://\(name)/")) }
            for await _ in lookUpStarts {}
            #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url())).status == 200)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(try await engine.perform(HTTPRequest(method: "GET", url: server.url())).status == 200)
            await engine.shutdown()
            server.stop()
        }

        @Test func shutdownDoesNotWaitForLookUp() async throws {
            let (name, lookUpStarts) = hangingName("shut-down")
            let engine = CurlEngine()
            let task = Task { try await engine.connect(host: name, port: 22) }
            for await _ in lookUpStarts {}
            await engine.shutdown()
            let error = await #expect(throws: CurlEngineError.self) { try await task.value }
            #expect(error?.kind == .shutDown)
        }

        @Test func connectTimeoutIncludesLookUp() async throws {
            let (name, lookUpStarts) = hangingName("timed-out")
            let engine = CurlEngine()
            var options = ConnectionOptions()
            options.connectTimeout = .milliseconds(50)
            let error = await #expect(throws: CurlEngineError.self) {
                try await engine.perform(HTTPRequest(method: "GET", url: "http://\(name)/", connection: options))
            }
            #expect(error?.kind == .timedOut)
            for await _ in lookUpStarts {}
            await engine.shutdown()
        }

        @Test func reportsMissingName() async throws {
            let engine = CurlEngine()
            let error = await #expect(throws: CurlEngineError.self) {
                try await engine.perform(HTTPRequest(method: "GET", url: "http://host.missing.invalid/"))
            }
            #expect(error?.kind == .hostNotFound)
            await engine.shutdown()
        }
    }
#endif
