/// The JSON members that scripts rely on.
enum SessionSchema {
    static let session: Set<String> = [
        "id", "index", "state", "phase", "why", "name", "direction", "account", "endpoint", "transport", "member", "files", "filesDone",
        "filesFailed", "bytesTotal", "bytesDone", "bytesSent", "rate", "averageRate", "secondsRemaining", "notBefore", "after", "rateLimit",
        "deadline", "attempts", "error", "tags", "context", "createdAt", "startedAt", "endedAt",
    ]

    static let shown = session.union(["items", "times"])

    static let item: Set<String> = [
        "source", "destination", "remoteURL", "state", "bytesTotal", "bytesDone", "bytesSent", "checksum", "partialExpiresAt", "answer",
        "warnings",
        "formFiles",
        "error",
    ]

    static let error: Set<String> = ["class", "code", "message", "file"]

    static let event: Set<String> = ["revision", "time", "event", "id", "index"]

    static let queue: Set<String> = [
        "mode", "idle", "remaining", "sessions", "running", "waiting", "scheduled", "paused", "held", "drafts", "cancelled", "completed",
        "failed",
        "nextDue", "maxSessions", "rateLimit", "timetable", "currentRateLimit", "minFree", "keepCompletedCount", "keepCompletedSeconds",
        "files", "filesDone", "filesFailed",
        "bytesTotal", "bytesDone", "bytesSent", "rate",
        "averageRate", "secondsRemaining", "removalsDue", "orderRevision", "revision",
    ]
}
