#if canImport(Glibc)
    import Glibc
#endif

enum SchedulingPolicy {
    /// Switches `run`, `agent run` and `stream` to SCHED_BATCH (sched(7)), so that interactive programs stay responsive.
    ///
    /// The process keeps its share of CPU time. This method recognizes the commands by the words `run` and `stream` among the arguments. A false
    /// match is harmless. Call this method before any thread starts, because threads inherit the policy.
    static func yieldToOthers() {
        #if os(Linux)
            guard ProcessArguments.current.contains(where: { $0 == "run" || $0 == "stream" }) else { return }
            var parameters = sched_param()
            _ = unsafe sched_setscheduler(0, batch, &parameters)
        #endif
    }

    /// SCHED_BATCH of linux/sched.h.
    private static let batch: CInt = 3
}
