import Locking
import TransferCore
import TransportTesting

/// A defect of listings that the conformance suite must detect. ``BrokenListings`` injects the defect.
enum ListingDefect: String, CaseIterable, Sendable, CustomStringConvertible {
    case reportsWrongSize = "reports the wrong size"
    case repeatsEntries = "lists an entry twice"
    case stopsEarly = "stops after the first response"
    case altersNames = "alters names"
    case inventsEntries = "invents an entry"
    case misjudgesMissingFolder = "reports a missing folder as transient"
    case hidesReceiversError = "hides the receiver's error"
    case ignoresCancellation = "ignores cancellation"
    case renamesCancellation = "does not throw CancellationError when cancelled"
    case misjudgesRefusal = "reports a refused connection as transient"

    var description: String { rawValue }

    var brokenPromises: [ListingPromise] {
        switch self {
        case .reportsWrongSize, .repeatsEntries: [.entriesAreComplete]
        case .stopsEarly: [.largeFolderIsComplete]
        case .altersNames: [.namesAreKept]
        case .inventsEntries: [.emptyFolderIsEmpty]
        case .misjudgesMissingFolder: [.missingFolderIsPermanent]
        case .hidesReceiversError: [.receiverEndsListing]
        case .ignoresCancellation, .renamesCancellation: [.cancelledAttemptEnds]
        case .misjudgesRefusal: [.refusedConnectionIsUnreachable]
        }
    }
}

/// A `MemoryTransport` with one injected defect in its listings.
struct BrokenListings: FolderListing {
    let memory: MemoryTransport
    let defect: ListingDefect

    var id: TransportID { memory.id }

    func shutdown() async {}

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        try await memory.perform(attempt, reporting: reporter)
    }

    func list(_ attempt: ListingAttempt, receive: @escaping @Sendable ([RemoteEntry]) async throws -> Void) async throws {
        let responses = Locked(0)
        if defect == .inventsEntries { try await receive([RemoteEntry(name: [0x61], kind: .folder)]) }
        do {
            try await run {
                try await memory.list(attempt) { entries in
                    let number = responses.withLock { responses in
                        responses += 1
                        return responses
                    }
                    if defect == .stopsEarly, number > 1 { return }
                    do {
                        try await receive(alter(entries))
                    } catch  where defect == .hidesReceiversError {
                        throw TransferError(.transient, .internalFailure, "The receiver failed.")
                    }
                }
            }
        } catch is CancellationError where defect == .renamesCancellation {
            throw TransferError(.transient, .cancelled, "The listing was cancelled.")
        } catch var error as TransferError {
            if defect == .misjudgesMissingFolder && error.code == .noSuchRemoteFile || defect == .misjudgesRefusal {
                error.failureClass = .transient
            }
            throw error
        }
    }

    private func run(_ body: @escaping @Sendable () async throws -> Void) async throws {
        guard defect == .ignoresCancellation else { return try await body() }
        try await Task { try await body() }.value
    }

    private func alter(_ entries: [RemoteEntry]) -> [RemoteEntry] {
        switch defect {
        case .repeatsEntries: entries + entries.prefix(1)
        case .altersNames: entries.map { RemoteEntry(name: $0.name.filter { $0 != 0x0A }, kind: $0.kind) }
        case .reportsWrongSize:
            entries.map { entry in
                if case .file(let size?) = entry.kind { RemoteEntry(name: entry.name, kind: .file(size: size + 1)) } else { entry }
            }
        default: entries
        }
    }
}
