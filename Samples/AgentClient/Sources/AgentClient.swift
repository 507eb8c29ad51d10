import Foundation
import TransferControl
import TransferKit

/// Passes files to the agent of `transferq` and exits. A later launch follows the uploads.
///
///     AgentClient STORE ACCOUNT FILE...    passes the files to the agent of the storage folder STORE
///     AgentClient STORE                    follows the files of earlier launches until they have arrived
@main
struct AgentClient {
    /// Marks the sessions of this app. Other apps can use the same agent.
    static let tag = "com.example.agent-client"

    static func main() async throws {
        let arguments = Array(CommandLine.arguments.dropFirst())
        guard arguments.count != 2, let folder = arguments.first else { return print("Usage: AgentClient STORE [ACCOUNT FILE...]") }
        // This object has the same methods as a queue in this process. It opens a connection for each call.
        let agent = RemoteTransferQueue(folder: folder)
        do {
            if arguments.count > 2 {
                try await agent.enqueue(.upload(Array(arguments[2...]), to: arguments[1], tags: [tag]))
                print("The agent has stored the session. Its upload no longer needs this program.")
            } else {
                try await follow(agent)
            }
        } catch let error as QueueError where error.code == .ownerUnreachable {
            print("No agent is running. To start one: transferq --store \(folder) agent start")
        }
    }

    static func follow(_ agent: RemoteTransferQueue) async throws {
        // Read the revision first. The events after this revision then report every change that the list below does not contain.
        let revision = try await agent.status().revision
        let sessions = try await agent.sessions(in: .tag(tag))
        for session in sessions { print("\(session.name): \(session.state.rawValue)") }

        var unfinished = sessions.filter { !$0.state.isEnded }
        if unfinished.isEmpty { return }
        // The client reconnects if the connection breaks, and continues after the last event.
        for try await event in agent.events(since: revision) {
            guard let index = unfinished.firstIndex(where: { event.concerns($0.id) }) else { continue }
            let name = unfinished[index].name
            switch event.kind {
            case .completed: print("\(name): completed")
            case .failed(_, let error): print("\(name): failed. \(error.message)")
            case .cancelled: print("\(name): cancelled")
            default: continue
            }
            unfinished.remove(at: index)
            if unfinished.isEmpty { return }
        }
    }
}
