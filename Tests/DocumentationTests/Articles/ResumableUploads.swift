import TransferCore
import TransportTUS

// The code of the article "Resumable Uploads for HTTP". ``ArticleTests`` verifies that both copies match.

// swift-format-ignore-file

private func create() throws {
    // ARTICLE
    let endpoint = Endpoint.tus("https://upload.example.com/files/", options: TUSOptions(dialect: .ietf))
    // END
    try TUSTransport.validate(endpoint)
}
