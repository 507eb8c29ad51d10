import Foundation
import Testing
import TransferKit

/// Random steps. After each step, the test compares the scheduler with ``ReferenceQueue``, which is simple enough to be verified by reading.
@Suite struct SchedulerModelTests {
    /// The tested seeds. Set `TRANSFERKIT_MODEL_SEEDS=10000` to test more.
    static let seeds = 0..<(ProcessInfo.processInfo.environment["TRANSFERKIT_MODEL_SEEDS"].flatMap { UInt64($0) } ?? 100)

    @Test(arguments: seeds)
    func matchesReferenceForRandomEvents(seed: UInt64) throws {
        var generator = StepGenerator(seed: seed)
        var sequence = ModelSequence(settings: generator.settings(), steps: [])
        var run = ModelRun(sequence.settings)
        let opening = generator.opening()
        do throws(Disagreement) {
            for number in 0..<150 {
                let step = number < opening.count ? opening[number] : generator.next(after: run.reference)
                sequence.steps.append(step)
                try run.play(step)
            }
            try run.runToEnd()
        } catch {
            Issue.record("\(try Shrinker.report(sequence, seed: seed, error))")
        }
    }

    @Test func replaysRecordedSequence() throws {
        var changes: UInt64 = 0
        for seed in UInt64(10)..<14 {
            var generator = StepGenerator(seed: seed)
            var sequence = ModelSequence(settings: generator.settings(), steps: generator.opening())
            var run = ModelRun(sequence.settings)
            for step in sequence.steps { try run.play(step) }
            for _ in 0..<150 {
                let step = generator.next(after: run.reference)
                sequence.steps.append(step)
                try run.play(step)
            }
            let replayed = try JSONDecoder().decode(ModelSequence.self, from: JSONEncoder().encode(sequence))
            var replay = ModelRun(replayed.settings)
            for step in replayed.steps { try replay.play(step) }
            #expect(replay.scheduler.observation(at: replay.now) == run.scheduler.observation(at: run.now))
            changes += run.reference.orderRevision
        }
        #expect(changes > 10)
    }

    /// The generated steps must reach all 17 wait reasons and all 10 error codes that a ``ReferenceQueue`` can return.
    @Test func generatedStepsReachEveryWaitReasonAndErrorCode() {
        var reasons: Set<String> = []
        var codes: Set<String> = []
        for seed in UInt64(0)..<100 {
            var generator = StepGenerator(seed: seed)
            var reference = ReferenceQueue(generator.settings().scheduler)
            let opening = generator.opening()
            var now = DualInstant.start
            for number in 0..<150 {
                let step = number < opening.count ? opening[number] : generator.next(after: reference)
                now = now + .seconds(step.wait)
                switch step.kind {
                case .event(let event): if let code = reference.step(event, at: now).code { codes.insert(code.rawValue) }
                case .clock(let seconds): now.date += Double(seconds)
                case .restart: reference = reference.restarted()
                case .undo: break
                }
                for why in reference.observation(at: now).sessions.compactMap(\.why) { reasons.insert(why.kind) }
            }
        }
        #expect(reasons.count == 17)
        let expected = [
            "accountInUse", "alreadyCompleted", "duplicate", "hasDependents", "impossibleOrder", "indexOutOfRange", "invalidTransition",
            "noSuchAccount", "noSuchSession", "staleOrder",
        ]
        #expect(codes.sorted() == expected)
    }

    @Test func findsShortestFailingSequence() {
        let steps = (0..<40).map { ModelStep(wait: $0, kind: .restart) }
        let shortest = Shrinker.shortest(ModelSequence(steps: steps)) { sequence in
            sequence.steps.contains { $0.wait == 7 } && sequence.steps.contains { $0.wait == 31 }
        }
        #expect(shortest.steps.map(\.wait) == [7, 31])
    }
}
