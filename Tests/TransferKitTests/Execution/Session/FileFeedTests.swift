import Testing
import TransferKit

@Suite struct FileFeedTests {
    /// A page without files, after which the session has no more files.
    private let lastPage = FilePage(end: 3, isLast: true)

    /// While the feed reads a page, the expansion can add files or end. The page may lack the new files, so the feed reads again.
    @Test(arguments: [false, true]) func readsAgainIfFilesWereAddedDuringReading(_ growsFirst: Bool) {
        var feed = FileFeed()
        feed.beginGrowing()
        #expect(feed.beginReading() == -1)
        if growsFirst { feed.grew() }
        feed.endGrowing()
        feed.received(lastPage)
        #expect(!feed.isFinished)
        // The feed continues at the end of the page.
        #expect(feed.beginReading() == 3)
        feed.received(lastPage)
        #expect(feed.isFinished)
    }

    @Test func waitsForMoreFiles() {
        var feed = FileFeed()
        feed.beginGrowing()
        #expect(feed.beginReading() == -1)
        feed.received(lastPage)
        #expect(!feed.isFinished && feed.beginReading() == nil)
        feed.grew()
        #expect(feed.beginReading() == 3)
        feed.received(lastPage)
        feed.endGrowing()
        #expect(!feed.isFinished && feed.beginReading() == 3)
        feed.received(lastPage)
        #expect(feed.isFinished)
    }

    @Test func readsOnceWithoutExpansion() {
        var feed = FileFeed()
        #expect(feed.beginReading() == -1 && feed.beginReading() == nil)
        feed.received(lastPage)
        #expect(feed.isFinished && feed.beginReading() == nil)
    }
}
