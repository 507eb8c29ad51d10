import Foundation
import Locking
import SystemPackage
import TransferCore
import TransferKit
import TransportTesting

/// A transport whose server is a folder, so that uploads survive a killed client, as with a real server.
///
/// An upload is a file that is named after the transfer ID. The suffix is `.part` while the upload is incomplete, and then `.done`.
final class ServerFolder: PartialDiscarding {
    let id: TransportID = "folder"
    let folder: FilePath

    private struct State {
        var gates: [String: Gate] = [:]
        var failures: [String: TransferError] = [:]
        var refusesRemovals = false
        var removalLatches: [SessionID: Latch] = [:]
    }

    private struct Gate {
        let arrival = Latch()
        let opening = Latch()
    }

    private static let chunkSize = 4_000
    let removalRefused = Latch()
    let removalAccepted = Latch()
    private let state = Locked(State())

    init(_ folder: FilePath) throws {
        self.folder = folder
        try FileManager.default.createDirectory(atPath: folder.string, withIntermediateDirectories: true)
    }

    func endpoint(_ host: String) -> Endpoint { Endpoint(transport: id, address: "folder://\(host)/") }

    // MARK: Scripting

    /// Holds each attempt to send the file `name` after the first chunk, until ``open(_:failingWith:)``.
    func close(_ name: String) { state.withLock { $0.gates[name] = Gate() } }

    /// Ends the effect of ``close(_:)`` for the file `name`, and resumes the held attempt.
    ///
    /// - Parameter error: The error with which the attempt fails, or nil to let the attempt continue.
    func open(_ name: String, failingWith error: TransferError? = nil) {
        state.withLock { state -> Gate? in
            state.failures[name] = error
            defer { state.gates[name] = nil }
            return state.gates[name]
        }?.opening.open()
    }

    /// Returns when an attempt to send the file `name` is held. Ignores attempts before the last ``close(_:)``.
    func reached(_ name: String) async throws {
        try await state.withLock { $0.gates[name] }?.arrival.wait()
    }

    /// Simulates the loss of a session's unfinished uploads. The uploads get the suffix `.lost`, so that the test can still find them.
    func lose(_ session: SessionID) throws {
        for upload in try uploads(".part") where upload.hasPrefix("\(session)") {
            let lost = String(upload.dropLast(5)) + ".lost"
            try FileManager.default.moveItem(atPath: folder.appending(upload).string, toPath: folder.appending(lost).string)
        }
    }

    /// Returns when no unfinished upload of a session remains.
    func waitUntilGone(_ session: SessionID) async throws {
        let latch = state.withLock { state in
            let latch = state.removalLatches[session] ?? Latch()
            state.removalLatches[session] = latch
            return latch
        }
        try openLatchesOfRemovedUploads()
        try await latch.wait()
    }

    private func openLatchesOfRemovedUploads() throws {
        let unfinished = try uploads(".part")
        let removalLatches = state.withLock { $0.removalLatches }
        for (session, latch) in removalLatches where !unfinished.contains(where: { $0.hasPrefix("\(session)") }) { latch.open() }
    }

    func refuseRemovals(_ refuses: Bool) { state.withLock { $0.refusesRemovals = refuses } }

    // MARK: Received uploads

    func uploads(_ suffix: String) throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: folder.string).filter { $0.hasSuffix(suffix) })
    }

    /// The size of an upload in bytes, or nil if there is no such upload.
    func size(of upload: String, evenIfLost includesLost: Bool = false) -> Int64? {
        for suffix in includesLost ? [".part", ".done", ".lost"] : [".part", ".done"] {
            guard let identity = try? SourceIdentity(ofFileAt: folder.appending(upload + suffix)) else { continue }
            return identity.size
        }
        return nil
    }

    // MARK: The transport

    func perform(_ attempt: FileAttempt, reporting reporter: AttemptReporter) async throws -> TransferReceipt {
        let name = attempt.remotePath.description
        let content = try Data(contentsOf: URL(fileURLWithPath: try attempt.source.path.string))
        let upload: String
        if let checkpoint = attempt.checkpoint {
            upload = String(decoding: checkpoint.data, as: UTF8.self)
            guard let size = size(of: upload), size >= checkpoint.confirmed else {
                throw TransferError(.resumeLost, .uploadGone, "The unfinished upload of \(name) is gone.")
            }
        } else {
            upload = "\(attempt.transferID)-\(UUID().uuidString.prefix(8))"
            try Data().write(to: URL(fileURLWithPath: folder.appending(upload + ".part").string))
            try await reporter.save(Checkpoint(data: Data(upload.utf8), confirmed: 0))
        }
        let partFile = folder.appending(upload + ".part")
        var position = size(of: upload) ?? 0
        reporter.report(sent: position, confirmed: position)
        while position < content.count {
            if position > 0 { try await waitAtGate(name) }
            try Task.checkCancellation()
            let chunk = content[Int(position)..<min(Int(position) + Self.chunkSize, content.count)]
            let descriptor = try FileDescriptor.open(partFile, .writeOnly, options: [.append])
            _ = try descriptor.closeAfter { try descriptor.writeAll(chunk) }
            position += Int64(chunk.count)
            try await reporter.save(Checkpoint(data: Data(upload.utf8), confirmed: position))
            reporter.report(sent: position, confirmed: position)
        }
        if FileManager.default.fileExists(atPath: partFile.string) {
            try FileManager.default.moveItem(atPath: partFile.string, toPath: folder.appending(upload + ".done").string)
        }
        return TransferReceipt(bytes: position)
    }

    private func waitAtGate(_ name: String) async throws {
        guard let gate = state.withLock({ $0.gates[name] }) else { return }
        gate.arrival.open()
        try await gate.opening.wait()
        if let error = state.withLock({ $0.failures.removeValue(forKey: name) }) { throw error }
    }

    func discard(_ checkpoint: Checkpoint, at endpoint: Endpoint, credentials: any CredentialProvider) async throws {
        guard !state.withLock({ $0.refusesRemovals }) else {
            removalRefused.open()
            throw TransferError(.transient, .serverError, "The server is busy.")
        }
        defer { removalAccepted.open() }
        let partFile = folder.appending(String(decoding: checkpoint.data, as: UTF8.self) + ".part")
        guard FileManager.default.fileExists(atPath: partFile.string) else { return }
        try FileManager.default.removeItem(atPath: partFile.string)
        try openLatchesOfRemovedUploads()
    }

    func shutdown() async {}
}
