import ArgumentParser

/// The names of events, separated by commas.
struct EventNames: ExpressibleByArgument {
    /// The names of all events, as in `QueueEvent.Kind.name`.
    private static let all: Set<String> = [
        "queueStarted", "queueStopped", "queueBecameIdle", "limitsChanged", "storageFailed", "quarantined", "storeTrimmed", "gap",
        "willChangeQueue", "didChangeQueue", "added", "removed", "moved", "draftsRemoved", "willActivate", "didActivate",
        "willStartRunning", "didStartRunning", "willStopRunning", "didStopRunning", "willDeactivate", "didDeactivate", "changed",
        "updated", "completed", "failed", "cancelled", "progress", "totalProgress", "itemStarted", "itemProgress", "streamDelayed",
        "itemCompleted", "itemFailed", "itemRestarted", "attemptFailed", "endpointChanged", "accountBlocked", "accountUnblocked",
        "needsCredentials",
    ]

    let names: Set<String>

    init?(argument: String) {
        let words = argument.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
        guard words.allSatisfy(Self.all.contains) else { return nil }
        names = Set(words)
    }
}
