import Foundation
import TransferKit
import TransportHTTP

/// Posts a file with a web form, and reads the server's response.
///
///     FormUpload ADDRESS FILE    for example http+form://127.0.0.1:8080/upload
@main
struct FormUpload {
    /// The response of this server. Yours has other fields.
    struct Answer: Decodable {
        struct File: Decodable {
            var field, name, type: String
            var length: Int
        }

        var fields: [String: String]
        var files: [File]
    }

    static func main() async throws {
        guard CommandLine.arguments.count == 3 else { return print("Usage: FormUpload ADDRESS FILE") }
        let queue = try await TransferQueue(storage: .temporary(), transports: [HTTPTransport()])

        // Text fields of every session of the account. An interrupted form is posted again from the start. The ID stays the same, so the server can
        // recognize a second copy.
        let form = HTTPOptions(fileField: "reel", fields: ["project": "north", "id": "{transfer}"])
        try await queue.save(Account("site", endpoints: [.http(CommandLine.arguments[1], options: form)]))

        // The metadata of a session becomes more text fields.
        let options = SessionOptions(metadata: ["title": "Day one"])
        let session = try await queue.enqueue(.upload([CommandLine.arguments[2]], to: "site", options: options))
        try await queue.start()
        _ = try await session.value

        for item in try await queue.items(of: session.id) {
            guard let response = item.answer else { continue }
            let answer = try JSONDecoder().decode(Answer.self, from: Data(response.text.utf8))
            print("Status \(response.status)")
            print("Fields: \(answer.fields.keys.sorted().joined(separator: ", "))")
            for file in answer.files { print("\(file.field): \(file.name), \(file.type), \(file.length) bytes") }
        }
        await queue.shutdown()
    }
}
