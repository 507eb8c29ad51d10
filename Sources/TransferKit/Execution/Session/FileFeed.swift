/// Supplies the unfinished files of a session in order, in pages. ``SessionFiles`` reads the next page from the database while files from the
/// current page are still left, and while the expansion of the session's folders adds files.
package struct FileFeed {
    static let pageSize = 256

    private var currentPage = FilePage(end: -1, isLast: false)
    private var nextIndex = 0
    private var pageAhead: FilePage?
    private var lastPosition: Int64 = -1
    private var isReading = false
    /// Whether an expansion may add files to the database.
    private(set) var isGrowing = false
    /// Whether the last page contained all remaining files, and no file was added after the reading of that page began.
    private var hasReadAll = false
    /// Whether files were added after the reading of the next page began, so that this page may lack these files.
    private var grewWhileReading = false
    /// Whether all files have been read, and no expansion may add files.
    private var hasAllFiles = false

    package init() {}

    /// The next file; nil if there are no more files, or the next page has not been read yet.
    var next: PendingFile? { nextIndex < currentPage.files.count ? currentPage.files[nextIndex] : nil }

    /// Whether all files have been taken, and no expansion can add files.
    package var isFinished: Bool { hasAllFiles && next == nil && pageAhead == nil }

    /// Marks the next page as being read. Returns the position after which the page starts, or nil if no page needs to be read now.
    package mutating func beginReading() -> Int64? {
        guard !isReading, pageAhead == nil, !hasReadAll else { return nil }
        isReading = true
        return lastPosition
    }

    /// Begins an expansion, which may add files to the database.
    package mutating func beginGrowing() { isGrowing = true }

    /// Records that the expansion added files.
    package mutating func grew() {
        hasReadAll = false
        grewWhileReading = isReading
    }

    /// Records that the expansion has added all files.
    package mutating func endGrowing() {
        isGrowing = false
        grew()
    }

    package mutating func received(_ page: FilePage) {
        isReading = false
        lastPosition = page.end
        hasReadAll = page.isLast && !grewWhileReading
        grewWhileReading = false
        hasAllFiles = hasReadAll && !isGrowing
        if next == nil {
            currentPage = page
            nextIndex = 0
        } else {
            pageAhead = page
        }
    }

    /// Takes the next file, with the checkpoints of earlier attempts. Returns nil if ``next`` is nil.
    mutating func take() -> (file: PendingFile, checkpoints: [String: StoredCheckpoint])? {
        guard let file = next else { return nil }
        nextIndex += 1
        let checkpoints = currentPage.checkpoints[file.position] ?? [:]
        if next == nil {
            currentPage = pageAhead ?? FilePage(end: lastPosition, isLast: false)
            pageAhead = nil
            nextIndex = 0
        }
        return (file, checkpoints)
    }
}
