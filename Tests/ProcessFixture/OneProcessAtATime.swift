package import Testing

/// Runs tests that start a copy of the test runner one after another, also those of different targets.
///
/// Such a process inherits the open descriptors of the runner, including the pipe with which another one reports its results. The runner
/// reads the pipe to its end on a thread that other tests need, so two such processes can wait for each other forever.
package struct OneProcessAtATime: SuiteTrait, TestTrait, TestScoping {
    private static let gate = Gate()

    package let isRecursive = true

    package func provideScope(for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void)
        async throws
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
    package static var oneProcessAtATime: Self { OneProcessAtATime() }
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
