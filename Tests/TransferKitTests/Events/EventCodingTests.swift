import Foundation
import Testing
import TransferCore
import TransferKit

@Suite struct EventCodingTests {
    static let id = SessionID()
    static let error = TransferError(
        .transient, .serverError, "The server said \"no\".", cause: "500", retryAfter: .milliseconds(1_500))

    /// At least one event of each kind.
    static let kinds: [QueueEvent.Kind] = {
        let other = SessionID()
        return [
            .queueStarted, .queueStopped, .queueBecameIdle, .limitsChanged,
            .storageFailed(QueueError(.storageUnavailable, "The disk is full.")), .quarantined("The row 7 can't be read."),
            .storeTrimmed("2 sessions were deleted."),
            .gap(from: 3, to: 9), .willChangeQueue(orderRevision: 12), .didChangeQueue(orderRevision: 12), .added([id, other], index: 4),
            .removed([id, other], indices: [2, 3]), .removed([id, other], indices: [2, 7]), .moved(id, from: 5, to: 0), .willActivate(id),
            .didActivate(id), .willStartRunning(id), .didStartRunning(id), .willStopRunning(id), .didStopRunning(id), .willDeactivate(id),
            .didDeactivate(id), .changed([other, id], .held), .updated(id), .completed(id), .failed(id, error), .cancelled([id]),
            .draftsRemoved([id, other]), .changed([id], .draft),
            .progress(id, SessionStatistics(files: 2, bytesTotal: 10, rate: 1.5)),
            .totalProgress(QueueStatistics(files: 3, bytesTotal: 10, rate: 2.5)), .itemStarted(id, position: 1),
            .streamDelayed(id, position: 3),
            .itemProgress(id, position: 1, ItemProgress(bytesTotal: nil, bytesDone: 1, bytesSent: 2)),
            .itemProgress(id, position: 1, ItemProgress(bytesTotal: 9, bytesDone: 1, bytesSent: 2)),
            .itemCompleted(id, position: 1 << 40, TransferReceipt(bytes: 7)),
            .itemCompleted(
                id, position: 0,
                TransferReceipt(
                    bytes: 7, remoteURL: "https://host/\"a\\b\"\n\u{1}é🙂", checksum: "sha256:00", warnings: ["One.", "\"Two\"\t"])),
            .itemCompleted(
                id, position: 2,
                TransferReceipt(bytes: 7, serverResponse: ServerResponse(status: 201, mediaType: "application/json", text: #"{"id":"ü"}"#))),
            .itemCompleted(id, position: 3, TransferReceipt(bytes: 7, serverResponse: ServerResponse(status: 204, isTruncated: true))),
            .itemFailed(id, position: 1, error), .itemRestarted(id, position: 2, error),
            .attemptFailed(id, error, retryAt: Date(timeIntervalSince1970: 1_000_000.25)), .endpointChanged(id, from: nil, to: "tus://a/"),
            .endpointChanged(id, from: "tus://\"a\"/", to: "sftp://b/"), .accountBlocked(account: "stud\"io", error),
            .accountUnblocked(account: "studio"), .needsCredentials(account: "studio", error),
        ]
    }()

    @Test(arguments: kinds) func encodesEveryEventAsJSON(kind: QueueEvent.Kind) throws {
        let event = QueueEvent(revision: 41, time: Date(timeIntervalSince1970: 1_000_000), kind: kind)
        #expect(try JSONDecoder().decode(QueueEvent.self, from: JSONEncoder().encode(event)) == event)
        #expect(try JSONDecoder().decode(QueueEvent.Kind.self, from: JSONEncoder().encode(kind)) == kind)
    }

    @Test func encodesFlatJSON() throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        func json(_ value: some Encodable) throws -> String { String(decoding: try encoder.encode(value), as: UTF8.self) }
        let (id, date) = (Self.id, Date(timeIntervalSince1970: 0))
        #expect(
            try json(QueueEvent(revision: 7, time: date, kind: .moved(id, from: 3, to: 1)))
                == #"{"event":"moved","from":3,"id":"\#(id.uuid)","revision":7,"time":"1970-01-01T00:00:00Z","to":1}"#)
        #expect(try json(QueueEvent.Kind.queueStarted) == #"{"event":"queueStarted"}"#)
        #expect(
            try json(QueueEvent.Kind.changed([id], .paused)) == #"{"event":"changed","ids":["\#(id.uuid)"],"state":"paused"}"#)
    }

    @Test(arguments: [
        #"{"revision":7,"time":0,"event":"levitated","id":"none"}"#, #"{"revision":7,"time":0,"event":"moved","from":"here"}"#,
        #"{"revision":7,"time":0,"event":"completed"}"#, #"{"revision":7,"time":0}"#,
    ])
    func decodesUnknownEventsAsGaps(json: String) throws {
        let event = try JSONDecoder().decode(QueueEvent.self, from: Data(json.utf8))
        #expect(event.revision == 7)
        #expect(event.kind == .gap(from: 7, to: 7))
    }

    @Test func storesEveryEvent() async throws {
        let folder = try TemporaryFolder()
        let store = try await QueueStore.open(.folder(folder.path), clock: .system)
        let kinds = Self.kinds
        let events = kinds.enumerated().map {
            QueueEvent(revision: UInt64($0.offset) + 1, time: Date(timeIntervalSince1970: 1_000_000.125), kind: $0.element)
        }
        for event in events { try await store.commit([.events([event], keeping: 1_000)]) }
        var read: [QueueEvent] = []
        while read.count < events.count { read += try await store.events(in: UInt64(read.count) + 1...UInt64(events.count)) }
        // The list includes a gap. A queue never stores gaps, but would read a stored gap correctly.
        #expect(read.map(\.kind) == kinds)
        #expect(read == events)
        await store.close()
    }
}
