import Foundation
import ScriptedHTTP
import Testing
import TransferCore
import TransportTUS

/// Offsets, lengths and sizes that no upload can have, from a server, a damaged database or a setting. Such numbers must not crash the process.
@Suite struct ImplausibleNumberTests {
    private static let numbers: [Int64] = [.max, .max - 1, 1 << 62, 1 << 57, (1 << 56) + 1]

    /// A failed stream has no known length.
    @Test(arguments: numbers) func rejectsOffsetBeyondFailedStream(offset: Int64) async throws {
        let failure = TransferError(.sourceLost, .producerGone, "The producer is gone.")
        let upload = try TestUpload(size: 10, offers: "creation,creation-defer-length") { _, _ in [.offset(Int(offset))] }
        let stream = try TestStream(upload.file, total: 4, ahead: 20, end: .failed(failure))
        #expect(await upload.failure(from: try upload.checkpoint(), source: stream.source)?.failureClass == .resumeLost)
        #expect(upload.methods == ["HEAD"])
        await upload.end()
    }

    @Test(arguments: numbers) func rejectsImplausibleOffsetOrLengthOfFile(number: Int64) async throws {
        for response in [ServerStep.offset(Int(number)), .offset(0, of: Int(number)), .offset(Int(number), of: Int(number))] {
            let upload = try TestUpload(size: 10, answers: [[response]])
            #expect(await upload.failure(from: try upload.checkpoint())?.failureClass == .resumeLost)
            await upload.end()
        }
    }

    @Test(arguments: numbers) func rejectsSegmentsLargerThanFile(size: Int64) async throws {
        let upload = try TestUpload(size: 10, offers: "creation,concatenation", answers: [[.created], [.accepted(10)]])
        let text = #"{"partSize":\#(min(size, 1 << 56)),"parts":[{},{}]}"#
        #expect(await upload.failure(from: Checkpoint(data: Data(text.utf8), confirmed: 0))?.failureClass == .resumeLost)
        await upload.end()
    }

    @Test(arguments: ["chunkMultiple", "chunkSize", "singleRequestSize", "parallelThreshold"])
    func rejectsHugeSettings(key: String) throws {
        for number in Self.numbers {
            let error = #expect(throws: TransferError.self) {
                try TUSTransport.validate(Endpoint(transport: .tus, address: "https://upload.example.com/", settings: [key: "\(number)"]))
            }
            #expect(error?.code == .invalidEndpoint && error?.message.contains(key) == true)
        }
    }
}
