import Locking
import Testing
import TransferCore
import TransferKit
import TransportTesting

@Suite struct EndpointRuleTests {
    private func hosts(_ fixture: RunFixture) -> [String: String] {
        let pairs = fixture.memory.attempts.map { ($0.path.description, String($0.endpoint.address.split(separator: "/").last ?? "")) }
        return Dictionary(pairs) { "\($0) \($1)" }
    }

    @Test func firstMatchingRuleDeterminesEndpointAndFallback() async throws {
        let fixture = try await RunFixture(
            ["small": 10, "large": 2_000, "edge": 1_000], hosts: ["a", "b", "c"],
            configure: { account in
                let addresses = account.endpoints.map(\.address)
                account.rules = [
                    EndpointRule(direction: .download, prefer: [addresses[2]]),
                    EndpointRule(minimumSize: 1_000, prefer: [addresses[2], addresses[1]]),
                    EndpointRule(direction: .upload, maximumSize: 999, prefer: [addresses[1]]),
                ]
            })
        fixture.memory.refuse(host: "c")
        #expect(try await fixture.run()?.hasSucceeded == true)
        let hosts = hosts(fixture)
        #expect(hosts["small"] == "b")
        // The first of the two files finds endpoint c unreachable. If the second file starts later, it skips c.
        for name in ["large", "edge"] {
            #expect(["b", "c b"].contains(hosts[name]), "the file moves to the next endpoint of the rule, not of the account")
        }
        #expect(hosts.values.contains("c b"))
        await fixture.close()
    }

    @Test func usesOrderOfAccountWithoutMatchingRule() async throws {
        let fixture = try await RunFixture(
            ["1": 10], hosts: ["a", "b"],
            configure: { $0.rules = [EndpointRule(minimumSize: 11, prefer: [$0.endpoints[1].address])] })
        #expect(try await fixture.run()?.hasSucceeded == true)
        #expect(hosts(fixture) == ["1": "a"])
        await fixture.close()
    }

    @Test func startedFileStaysAtEndpoint() async throws {
        let fixture = try await RunFixture(["1": 10_000], hosts: ["a", "b"])
        fixture.memory.faults.append(.cut(afterBytes: 5_000))
        let run = try await fixture.start()
        await fixture.clock.waitForSleep(of: .seconds(1))
        fixture.account.withLock { $0.rules = [EndpointRule(prefer: [$0.endpoints[1].address])] }
        fixture.clock.advance(by: .seconds(1))
        #expect(try await run.value?.hasSucceeded == true)
        #expect(hosts(fixture) == ["1": "a a"])
        await fixture.close()
    }

    @Test func rejectsInvalidRule() async throws {
        let fixture = try QueueFixture()
        let queue = try await fixture.openWithAccounts()
        let endpoint = fixture.memory.endpoint(host: "a")
        for rule in [
            EndpointRule(prefer: []), EndpointRule(prefer: [endpoint.address, endpoint.address]), EndpointRule(prefer: ["memory://z/"]),
            EndpointRule(minimumSize: -1, prefer: [endpoint.address]),
            EndpointRule(minimumSize: 2, maximumSize: 1, prefer: [endpoint.address]),
        ] {
            let error = await #expect(throws: QueueError.self) {
                try await queue.save(Account("a", endpoints: [endpoint], rules: [rule]))
            }
            #expect(error?.code == .invalidAccount)
        }
        let rules = [EndpointRule(direction: .upload, maximumSize: 5, prefer: [endpoint.address])]
        try await queue.save(Account("a", endpoints: [endpoint], rules: rules))
        await queue.shutdown()
        let reopened = try await fixture.open()
        #expect(await reopened.account("a")?.account.rules == rules)
        await reopened.shutdown()
    }
}
