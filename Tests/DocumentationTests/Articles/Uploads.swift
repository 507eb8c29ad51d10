import TransferKit

// The code of the article "Uploads". ``ArticleTests`` verifies that both copies match.

// swift-format-ignore-file

private func copy() -> TransferItem {
    // ARTICLE
    var item = TransferItem("/tmp/export.mov")
    item.keepsCopy = true
    // END
    return item
}
