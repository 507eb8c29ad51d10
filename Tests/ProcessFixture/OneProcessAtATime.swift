package import Testing

/// A trait for tests that start a copy of the test runner. It runs these tests one at a time, even if they belong to different targets.
///
/// A copy of the runner inherits the runner's open descriptors, including the pipe through which another copy reports its results. The
/// runner reads each pipe to its end on a thread that other tests need, so two copies can wait for each other forever.
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
    private var isOccupied = false
    private var waiting: [CheckedContinuation<Void, Never>] = []

    func enter() async {
        guard isOccupied else {
            isOccupied = true
            return
        }
        await withCheckedContinuation { waiting.append($0) }
    }

    func leave() {
        if waiting.isEmpty { isOccupied = false } else { waiting.removeFirst().resume() }
    }
}
