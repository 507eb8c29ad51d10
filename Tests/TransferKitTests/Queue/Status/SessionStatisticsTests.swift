import Foundation
import Testing
import TransferKit

@Suite struct SessionStatisticsTests {
    @Test(arguments: [
        (SessionStatistics(files: 2, bytesTotal: 400, bytesDone: 100), 0.25),
        (SessionStatistics(files: 1, bytesTotal: 400, bytesDone: 100, bytesSent: 300), 0.75),
        (SessionStatistics(files: 1, bytesTotal: 4, bytesDone: 5), 1),
        (SessionStatistics(files: 4, filesDone: 1), 0.25),
        (SessionStatistics(files: 1, bytesTotal: 400, bytesDone: 100, filesUnsized: 1), nil),
        (SessionStatistics(), nil),
    ]) func computesFractionCompleted(statistics: SessionStatistics, fraction: Double?) {
        #expect(statistics.fractionCompleted == fraction)
    }

    @Test func localizedDescriptionOfErrorIsMessage() {
        let error: any Error = QueueError(.noSuchSession, "There is no such session.")
        #expect(error.localizedDescription == "There is no such session.")
    }
}
