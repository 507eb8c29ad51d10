import ArgumentParser
import TransferKit

/// Which sessions a command is about.
struct SessionSelection: ParsableArguments {
    @Argument(help: ArgumentHelp("IDs, or the first characters of one that no other begins with.", valueName: "id"))
    var ids: [String] = []

    @Flag(help: "All sessions.")
    var all = false

    @Option(help: "The sessions of this account.")
    var account: String?

    @Option(help: "The sessions with this tag.")
    var tag: String?

    @Flag(help: "The sessions that failed.")
    var failed = false

    private var hasFilter: Bool { account != nil || tag != nil || failed }

    func validate() throws {
        switch (!ids.isEmpty, all, hasFilter) {
        case (true, false, false), (false, true, false), (false, false, true): return
        case (false, false, false):
            throw ValidationError("Nothing is selected; name IDs, or give --all, --account, --tag or --failed.")
        default:
            throw ValidationError("IDs, --all and the filters --account, --tag and --failed can't be combined with each other.")
        }
    }

    /// The IDs of the sessions that are meant, in the order of the queue or of the arguments.
    func resolve(in queue: TransferQueue) async throws -> [SessionID] {
        if all { return await queue.sessionIDs() }
        if hasFilter {
            if let account, await queue.account(account) == nil {
                throw CommandFailure(.unfit, "There is no account named \"\(account)\".")
            }
            var found: [SessionID] = []
            try await queue.forEachSession { session in
                let isMeant =
                    (account == nil || session.account == account) && (tag.map(session.tags.contains) ?? true)
                    && (!failed || session.state == .failed)
                if isMeant { found.append(session.id) }
                return true
            }
            return found
        }
        let known = await queue.sessionIDs()
        var found: [SessionID] = []
        for id in ids {
            let session = try SessionPrefix.resolve(id, among: known)
            if !found.contains(session) { found.append(session) }
        }
        return found
    }
}
