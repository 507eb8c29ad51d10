import Foundation
import TransferKit
import TransportTUS

/// Uploads each file of a folder as a separate session, prints the progress, and resumes after a crash.
///
///     BatchUploader SERVER FOLDER    adds the files of FOLDER, and uploads them to the tus server
///     BatchUploader                  resumes the uploads of an earlier launch
@main
struct BatchUploader {
    static func main() async throws {
        // The queue keeps its state in ~/.local/state/com.example.batch-uploader. Only one process at a time can open this folder.
        let queue = try await TransferQueue(storage: .application("com.example.batch-uploader"), transports: [TUSTransport()])
        if CommandLine.arguments.count == 3 {
            try await add(filesIn: CommandLine.arguments[2], to: CommandLine.arguments[1], queue)
        }

        let sessions = try await queue.sessions()
        let names = Dictionary(uniqueKeysWithValues: sessions.map { ($0.id, $0.name) })
        print("\(sessions.count) sessions, \(sessions.count { $0.state == .completed }) completed")

        // The subscription begins here, before `start()`, so no event is missed.
        let events = queue.events
        try await queue.start()
        loop: for await event in events {
            let name = event.session.flatMap { names[$0] } ?? ""
            switch event.kind {
            case .progress(_, let figures):
                // The fraction is nil while a size is unknown. The size of a local file is always known.
                if let fraction = figures.fractionCompleted { print("\(name): \(Int(fraction * 100)) %") }
            case .completed: print("\(name) completed")
            case .failed(_, let error): print("\(name) failed: \(error.message)")
            case .attemptFailed(_, let error, _): print("\(name) will be retried: \(error.message)")
            case .queueBecameIdle: break loop
            default: break
            }
        }
        await queue.shutdown()
    }

    static func add(filesIn folder: String, to server: String, _ queue: TransferQueue) async throws {
        // The queue stores the account. Saving an account with the same name replaces it.
        try await queue.save(Account("studio", endpoints: [.tus(server)]))
        let files = try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
        let requests = try files.map { name in
            let file = URL(filePath: folder).appending(path: name)
            var request = try SessionRequest.upload([file], to: "studio")
            // If the program adds the same folder again, these keys prevent second sessions for the same files.
            request.deduplicationKey = file.path
            request.deduplicatesCompleted = true
            return request
        }
        // This call stores all sessions, or none.
        try await queue.enqueue(requests)
    }
}
