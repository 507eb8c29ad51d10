/// Supplies the unfinished files of a session in order, in pages. ``SessionFiles`` reads the next page from the store while files from the
/// current page are still left.
struct FileFeed {
    static let pageSize = 256

    private var currentPage = FilePage(files: [], checkpoints: [:], filesSeen: nil)
    private var nextIndex = 0
    private var pageAhead: FilePage?
    private var lastPosition: Int64 = -1
    private var isReading = false
    /// The number of the session's files when the last page was read; nil until then.
    private(set) var filesSeen: Int64?

    /// The next file; nil if there are no more files, or the next page has not been read yet.
    var next: PendingFile? { nextIndex < currentPage.files.count ? currentPage.files[nextIndex] : nil }

    /// Whether all files have been taken.
    var isFinished: Bool { filesSeen != nil && next == nil && pageAhead == nil }

    /// Marks the next page as being read. Returns the position after which the page starts, or nil if no page needs to be read now.
    mutating func beginReading() -> Int64? {
        guard !isReading, filesSeen == nil, pageAhead == nil else { return nil }
        isReading = true
        return lastPosition
    }

    mutating func received(_ page: FilePage) {
        isReading = false
        lastPosition = page.files.last?.position ?? lastPosition
        filesSeen = page.filesSeen
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
            currentPage = pageAhead ?? FilePage(files: [], checkpoints: [:], filesSeen: nil)
            pageAhead = nil
            nextIndex = 0
        }
        return (file, checkpoints)
    }
}
