import Foundation
import SystemPackage
import TransferCore
import TransferKit
import TransportHTTP

// The code of the article "Plain HTTP servers", in the same order. ``HTTPArticleTests`` verifies that both copies match.

// swift-format-ignore-file

private func addresses(_ queue: TransferQueue) async throws {
    // ARTICLE
    let bucket = Account(
        "bucket", endpoints: [.http("https+put://bucket.example.com/in/", options: HTTPOptions(metadataPrefix: "x-amz-meta-"))])
    let site = Account(
        "site", endpoints: [.http("https+form://www.example.com/upload", options: HTTPOptions(fields: ["id": "{transfer}"]))])
    let mirror = Account("mirror", endpoints: [.http("https+get://cdn.example.com/files/{path}?version=3")])
    for account in [bucket, site, mirror] { try await queue.save(account) }
    // END
}

private func signed(_ queue: TransferQueue) async throws {
    // ARTICLE
    var item = TransferItem("/srv/in/a.mov")
    item.uploadURL = "https://bucket.example.com/in/a.mov?signature=0123456789abcdef"
    try await queue.enqueue(.upload(items: [item], to: "bucket"))
    // END
}

private func severalFiles(_ queue: TransferQueue) async throws {
    // ARTICLE
    struct Created: Decodable { var id: Int }
    let form = TransferItem.form(
        fields: ["title": "Day one", "tag": "raw", "tag": "4k"],
        files: [
            .file("/srv/in/a.mov", field: "reel"),
            .file("/srv/in/sheet", field: "papers", name: "Sheet 1.pdf", mediaType: "application/pdf"),
            .data(Data(#"{"take":2}"#.utf8), field: "notes", name: "notes.json"),
        ])
    let session = try await queue.enqueue(.upload(items: [form], to: "site"))
    let id = try await session.response(as: Created.self).id
    // END
    _ = id
}

private func form(_ queue: TransferQueue) async throws {
    // ARTICLE
    let form = HTTPOptions(
        upload: .form, fileField: "reel", files: ["picture": ["{source}.jpg"], "papers": ["/srv/a.pdf", "/srv/b.pdf"]])
    let options = SessionOptions(metadata: ["title": "Day one"], settings: form.settings)
    try await queue.enqueue(.upload(["/srv/in/a.mov"], to: "site", options: options))
    // END
}

private func folders(_ queue: TransferQueue) async throws {
    // ARTICLE
    let nas = Account("nas", endpoints: [.http("https+put://nas.example.com/dav/", options: HTTPOptions(webDAV: true))])
    try await queue.save(nas)
    try await queue.enqueue(.upload(["/srv/in/stills"], to: "nas"))
    try await queue.enqueue(.download(items: [.remoteFolder("reels/june")], from: "nas", to: "/srv/out"))
    // END
}
