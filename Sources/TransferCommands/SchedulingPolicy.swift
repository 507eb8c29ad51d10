#if canImport(Glibc)
    import Glibc
#endif

/// How the system shares its processors between this program and others.
public enum SchedulingPolicy: Sendable {
    /// Lets threads of other programs finish what they are at when this one has work: for the commands `run` and `agent run`, which move files in
    /// the background of what else a machine does, often for a server on the same machine. Their share of the processors stays as large
    /// (sched(7), SCHED_BATCH). Looks for the word alone, as another command comes to no harm by it.
    ///
    /// To be called before there is another thread, as each inherits it.
    public static func yieldToOthers() {
        #if os(Linux)
            guard CommandLine.arguments.dropFirst().contains("run") else { return }
            var parameters = sched_param()
            _ = unsafe sched_setscheduler(0, batch, &parameters)
        #endif
    }

    /// SCHED_BATCH of linux/sched.h.
    private static let batch: CInt = 3
}
