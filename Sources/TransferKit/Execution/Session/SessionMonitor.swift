/// Samples the progress of the files in flight, to update the statistics and to end stalled attempts. Also reports local files that take a
/// long time to read.
struct SessionMonitor {
    let live: LiveRun
    let clock: EngineClock
    var reportLongReads: @Sendable () -> Void = {}

    private static let interval = Duration.milliseconds(100)
    /// The longest plausible gap between two samples. A longer gap means that the monitor did not run, for example because this machine was
    /// suspended.
    private static let longestGap = Duration.seconds(5)
    /// The interval at which the statistics are published while files are in flight and no bytes move, until the rate has fallen below 1 byte per
    /// second.
    private static let stillInterval = Duration.seconds(1)

    /// Runs until its task is cancelled.
    ///
    /// - Parameters:
    ///   - publishItem: Receives the progress of the files in flight, if the session's options request it (``SessionOptions/reportsItemProgress``).
    ///   - publish: Receives the statistics.
    func watch(
        publishItem: @Sendable (_ position: Int64, ItemProgress) -> Void, _ publish: @Sendable (SessionStatistics) -> Void
    ) async {
        var watches: [ObjectIdentifier: (file: ActiveFile, watch: StallWatch)] = [:]
        var shown: [ObjectIdentifier: ItemProgress] = [:]
        var published: (sample: SessionStatistics, rate: Double?, uptime: Duration)?
        var sampledAt = clock.now()
        while (try? await clock.sleep(Self.interval)) != nil {
            let now = clock.now()
            // A gap does not count as a stall: all attempts get a new watch.
            if now - sampledAt > Self.longestGap { watches = [:] }
            sampledAt = now
            reportLongReads()
            let options = live.options
            let active = live.activeFiles
            let present = Set(active.map(ObjectIdentifier.init))
            watches = watches.filter { present.contains($0.key) }
            for file in active where !file.isStalled {
                var entry =
                    watches[ObjectIdentifier(file)]
                    ?? (file, StallWatch(file, stallTimeout: options.stallTimeout, responseTimeout: options.responseTimeout, at: now))
                if entry.watch.sample(file, at: now) { file.stall() }
                watches[ObjectIdentifier(file)] = entry
            }
            if options.reportsItemProgress {
                shown = shown.filter { present.contains($0.key) }
                live.forEachActiveFile { file in
                    let progress = file.progress
                    guard shown.updateValue(progress, forKey: ObjectIdentifier(file)) != progress else { return }
                    publishItem(file.position, progress)
                }
            }
            let sample = live.sample(at: now)
            if let published, sample == published.sample {
                // Without these reports, the last reported rate would look like the current rate.
                guard !active.isEmpty, now - published.uptime >= Self.stillInterval, published.rate.map({ $0 >= 1 }) ?? true else {
                    continue
                }
            }
            let statistics = live.statistics(at: now)
            published = (sample, statistics.rate, now)
            publish(statistics)
        }
    }
}
