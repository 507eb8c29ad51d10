import Foundation
import Testing
import TransferKit

/// Responses of owners of earlier versions.
@Suite struct OlderOwnerTests {
    @Test func decodesStatisticsWithoutRemovals() throws {
        let encoded = """
            {"bytesDone":3,"bytesRemaining":1,"bytesSent":4,"bytesTotal":5,"files":2,"filesDone":1,"filesFailed":1,"rate":2.5,"secondsElapsed":8}
            """
        let figures = try JSONDecoder().decode(QueueStatistics.self, from: Data(encoded.utf8))
        #expect(figures.removalsDue == 0)
        #expect(figures.rate == 2.5)
        #expect(figures.secondsRemaining == nil)
        let counts: [Int] = [figures.files, figures.filesDone, figures.filesFailed]
        #expect(counts == [2, 1, 1])
        let bytes: [Int64] = [figures.bytesDone, figures.bytesRemaining, figures.bytesSent, figures.bytesTotal]
        #expect(bytes == [3, 1, 4, 5])
        #expect(figures.secondsElapsed == 8)
        // Encoding and decoding again gives the same value.
        var now = figures
        now.removalsDue = 7
        now.averageRate = 1
        now.secondsRemaining = 4
        let back = try JSONDecoder().decode(QueueStatistics.self, from: JSONEncoder().encode(now))
        #expect(back == now)
    }
}
