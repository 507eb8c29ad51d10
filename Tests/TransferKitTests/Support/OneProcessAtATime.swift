import Testing

/// Serializes tests that start the test runner itself as another process.
/// Such a process inherits the open files of the runner, including the pipe on which another process reports its results. The runner reads
/// that pipe to its end on a thread of the pool that it needs to continue with the others, so two processes at once can wait for each other
/// forever.
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
