import TransferCore

extension PromiseCheck {
    func progressNeverDecreases() async throws {
        let (source, _) = try makeSource(Self.largeSize)
        let path = try makePath()
        let first = AttemptRecorder()
        try await fixture.cut(afterBytes: 2_000_000)
        _ = try await failure("When the connection broke") { try await send(source, as: path, first) }
        let second = AttemptRecorder()
        try await send(source, as: path, from: first.checkpoints.last, second)
        for recorder in [first, second] {
            for (earlier, later) in zip(recorder.progress, recorder.progress.dropFirst()) {
                try require(later.sent >= earlier.sent, "The number of sent bytes fell from \(earlier.sent) to \(later.sent).")
                try require(
                    later.confirmed >= earlier.confirmed,
                    "The number of confirmed bytes fell from \(earlier.confirmed) to \(later.confirmed).")
            }
        }
    }

    func confirmedBytesAreStored() async throws {
        for cut in [1, 500_000, 2_000_000] {
            let (source, _) = try makeSource(Self.largeSize)
            let path = try makePath()
            let recorder = AttemptRecorder()
            try await fixture.cut(afterBytes: Int64(cut))
            _ = try await failure("When the connection broke after \(cut) bytes") { try await send(source, as: path, recorder) }
            // The stored content only grows, so it is largest at the end of the attempt.
            let stored = try await fixture.storedSize(of: path)
            let confirmed = recorder.progress.map(\.confirmed).max() ?? 0
            try require(confirmed <= stored, "\(confirmed) bytes were reported as confirmed, but the other end has \(stored).")
        }
    }

    func progressEndsAtSize() async throws {
        for size in [1, 100_000, Self.largeSize] {
            let (source, _) = try makeSource(size)
            let recorder = AttemptRecorder()
            try await send(source, as: makePath(), recorder)
            let last = recorder.progress.last
            try require(
                last?.sent == Int64(size) && last?.confirmed == Int64(size),
                "The last report for \(size) bytes has \(last?.sent ?? 0) sent and \(last?.confirmed ?? 0) confirmed bytes.")
        }
    }

    func rateLimitIsRespected() async throws {
        for allowed in [1, 100_000] {
            let (source, content) = try makeSource(Self.largeSize)
            let path = try makePath()
            let recorder = AttemptRecorder(allowance: allowed)
            let attempt = start(source, as: path, recorder)
            try await attempt.waitUntilHeld(by: recorder, within: deadline, of: self)
            // With several segments, the stored content has gaps, so its size is not the number of sent bytes.
            let stored = fixture.options.segmentsPerFile > 1 ? 0 : try await fixture.storedSize(of: path)
            let sent = recorder.progress.map(\.sent).max() ?? 0
            try require(max(stored, sent) <= allowed, "\(max(stored, sent)) bytes were sent, but only \(allowed) were allowed.")
            recorder.allowAll()
            _ = try await attempt.value(within: deadline, of: self)
            try await requireArrived(content, as: path, "After the limit was removed")
        }
    }
}
