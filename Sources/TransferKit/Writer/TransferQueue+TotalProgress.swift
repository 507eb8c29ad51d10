import TransferCore

extension TransferQueue {
    /// The shortest interval between two `totalProgress` events. For each of these events, the queue reads its database.
    private static let shortestInterval = Duration.milliseconds(100)

    /// Publishes the statistics of the whole queue at the configured interval while sessions run, and once after the last run.
    func beginTotalProgress() {
        guard let interval = configuration.totalProgressInterval, throughput.beginPublishing() else { return }
        let clock = configuration.clock
        Task { [weak self] in
            repeat { try? await clock.sleep(max(interval, Self.shortestInterval)) } while await self?.publishTotalProgress() == true
        }
    }

    /// Publishes the statistics once.
    ///
    /// - Returns: Whether the statistics must be published again, because a session ran at the start or at the end of this call.
    private func publishTotalProgress() async -> Bool {
        let isLast = runs.isEmpty
        // If the database can't be read now, the next event contains the statistics.
        if let statistics = try? await statistics() { hub.publishUnnumbered(.totalProgress(statistics), at: configuration.clock.date()) }
        guard isLast, runs.isEmpty else { return true }
        throughput.endPublishing()
        return false
    }
}
