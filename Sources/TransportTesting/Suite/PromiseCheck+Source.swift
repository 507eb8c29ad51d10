import Foundation
import SystemPackage
import TransferCore

extension PromiseCheck {
    func changedSourceIsRejected() async throws {
        for change in SourceChange.allCases {
            let (source, _) = try makeSource(100_000)
            try change.apply(to: source)
            let path = try makePath()
            try await expect(.sourceChanged, "When the source \(change)") { try await send(source, as: path) }
            let stored = try await fixture.storedSize(of: path)
            try require(stored == 0, "When the source \(change), \(stored) bytes arrived nevertheless.")
        }
    }

    func changedSourceIsRejectedOnResume() async throws {
        for change in SourceChange.allCases {
            let (source, _) = try makeSource(Self.largeSize)
            let path = try makePath()
            let recorder = AttemptRecorder()
            try await fixture.cut(afterBytes: 1_000_000)
            _ = try await failure("When the connection broke") { try await send(source, as: path, recorder) }
            let before = try await fixture.storedSize(of: path)
            try change.apply(to: source)
            try await expect(.sourceChanged, "When the source \(change) before the upload was resumed") {
                try await send(source, as: path, from: recorder.checkpoints.last)
            }
            let after = try await fixture.storedSize(of: path)
            try require(after == before, "When the source \(change), \(after - before) bytes of the new version were sent.")
        }
    }

    func changeDuringAttemptIsDetected() async throws {
        for change in SourceChange.allCases {
            let (source, _) = try makeSource(Self.largeSize)
            let recorder = AttemptRecorder(allowance: 100_000)
            let attempt = start(source, as: try makePath(), recorder)
            try await attempt.waitUntilHeld(by: recorder, within: deadline, of: self)
            try change.apply(to: source)
            recorder.allowAll()
            try await expect(.sourceChanged, "When the source \(change) half-way") { try await attempt.value(within: deadline, of: self) }
        }
    }

    func missingSourceThrowsSourceLost() async throws {
        let (source, _) = try makeSource(1000)
        try FileManager.default.removeItem(atPath: source.path.string)
        try await expect(.sourceLost, "When the source was removed") { try await send(source, as: makePath()) }
        try FileManager.default.createDirectory(atPath: source.path.string, withIntermediateDirectories: false)
        try await expect(.sourceLost, "When a folder replaced the source") { try await send(source, as: makePath()) }
    }
}

/// A change to a source after the queue recorded the source's identity.
enum SourceChange: String, CaseIterable, CustomStringConvertible {
    case grew = "grew"
    case shrank = "shrank"
    case wasTouched = "got a different modification time"

    var description: String { rawValue }

    func apply(to source: UploadSource) throws {
        switch self {
        case .grew: try resize(source, to: source.size + 1)
        case .shrank: try resize(source, to: source.size / 2)
        case .wasTouched:
            // The difference is two hours, which every file system can represent.
            let time = Date(timeIntervalSince1970: Double(source.identity.modificationTime / 1_000_000_000) - 7200)
            try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: source.path.string)
        }
    }

    private func resize(_ source: UploadSource, to size: Int64) throws {
        let file = try FileDescriptor.open(source.path, .writeOnly)
        try file.closeAfter { try file.resize(to: size) }
    }
}
