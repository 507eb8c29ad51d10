import Testing

/// Runs tests that start processes of the test runner itself one after the other.
///
/// Such a process inherits what is open in the runner, also the pipe by which another one tells its results. The runner reads that to its end on
/// a thread of the pool that it needs for going on with the others: two at once can wait for each other for ever.
struct OneProcessAtATime: SuiteTrait, TestTrait, TestScoping {
    private static let gate = Gate()

    let isRecursive = true

    func provideScope(for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void) async throws
    {
        await Self.gate.enter()
        do {
            try await function()
        } catch {
            await Self.gate.leave()
            throw error
        }
        await Self.gate.leave()
    }
}

extension Trait where Self == OneProcessAtATime {
    static var oneProcessAtATime: Self { OneProcessAtATime() }
}

private actor Gate {
    private var isTaken = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func enter() async {
        guard isTaken else {
            isTaken = true
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() {
        if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
    }
}
