import Foundation
import TransferKit
import TransportHTTP

/// Posts a file and a note in one web form, and reads the server's response.
///
///     FormUpload ADDRESS FILE    for example http+form://127.0.0.1:8080/upload
@main
struct FormUpload {
    /// The response of this sample's server. Your server's response has other fields.
    struct FormResponse: Decodable {
        struct File: Decodable {
            var field, name, type: String
            var length: Int
        }

        var fields: [String: String]
        var files: [File]
    }

    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else { return print("Usage: FormUpload ADDRESS FILE") }
        let queue = try await TransferQueue(storage: .inMemory, transports: [HTTPTransport()])

        // An interrupted form restarts from byte 0. The ID stays the same, so the server can recognize a second copy.
        let options = HTTPOptions(fields: ["id": "{transfer}"])
        try await queue.save(Account("site", endpoints: [.http(arguments[1], options: options)]))

        // The files arrive in one request, together or not at all.
        let form = TransferItem.form(
            fields: ["title": "Day one"],
            files: [
                .file(arguments[2], field: "reel"),
                .data(Data("Colours are final.".utf8), field: "note", name: "note.txt"),
            ])
        let session = try await queue.enqueue(.upload(items: [form], to: "site"))
        try await queue.start()

        // Waits until the session has ended. The queue stores the response. With a storage folder, a later process can read it, too.
        let response = try await session.response(as: FormResponse.self)
        print("Fields: \(response.fields.keys.sorted().joined(separator: ", "))")
        for file in response.files { print("\(file.field): \(file.name), \(file.type), \(file.length) bytes") }
        await queue.shutdown()
    }
}
