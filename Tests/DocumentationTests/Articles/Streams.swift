import Foundation
import TransferKit

// The code of the article "Streams". ``ArticleTests`` verifies that both copies match.

// swift-format-ignore-file

private func write(_ writer: StreamWriter) async throws {
    // ARTICLE
    var pending = Data("a sample".utf8)
    while !pending.isEmpty {
        pending.removeFirst(try writer.tryWrite(pending))
        if !pending.isEmpty { try await writer.whenWritable() }
    }
    // END
}
