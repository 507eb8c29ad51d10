import Foundation
import TransferCore

extension PromiseCheck {
    func contentArrivesIntact() async throws {
        let limits = [64 * 1024, 1024 * 1024]
        for size in [0, 1] + limits.flatMap({ [$0 - 1, $0, $0 + 1] }) + [Self.largeSize] {
            let (source, content) = try makeSource(size)
            let path = try makePath()
            try await send(source, as: path)
            try await requireArrived(content, as: path, "For a file of \(size) bytes")
        }
    }

    func receiptHasSize() async throws {
        for size in [0, 1, 100_000] {
            let (source, _) = try makeSource(size)
            let receipt = try await send(source, as: makePath())
            try require(receipt.bytes == size, "For a file of \(size) bytes, the receipt contains the size \(receipt.bytes).")
        }
    }

    func manyFilesArrive() async throws {
        let files = try (0..<100).map { number in (try makeSource(1000 + number, seed: UInt64(number + 1)), try makePath("many-\(number)"))
        }
        let attempts = files.map { start($0.0.source, as: $0.1, AttemptRecorder()) }
        for attempt in attempts { _ = try await attempt.value(within: deadline, of: self) }
        for (file, path) in files { try await requireArrived(file.content, as: path, "For \(path)") }
    }

    func unusualNamesAreSafe() async throws {
        let names = [
            "with space", " leading and trailing ", "naïve-Ærø-日本語-👩‍🚀", "e\u{301}", String(repeating: "n", count: 200), "line\nbreak",
            "carriage\rreturn",
            "quote\"d", "comma,semi;colon", "per%cent%20", "ques?tion#mark", "back\\slash", "-dash", ".hidden", "plus+amp&", "tab\there",
            "\u{7F}",
        ]
        for name in names { try await checkName(RemotePath(name)) }
        // This name is not UTF-8, but valid on a file system.
        try await checkName(RemotePath(bytes: [0x61, 0xFF, 0xFE, 0x62]))
    }

    private func checkName(_ path: RemotePath) async throws {
        let (source, content) = try makeSource(1000)
        let recorder = AttemptRecorder()
        do {
            try await send(source, as: path, recorder)
        } catch let error as TransferError {
            let situation = "For the rejected name \(path.description.debugDescription)"
            let isFinal = error.failureClass == .unsupported || error.failureClass == .permanent
            try require(isFinal, "\(situation), the error is of class \(error.failureClass), so it would be retried.")
            let stored = try await fixture.storedSize(of: path)
            try require(stored == 0, "\(situation), \(stored) bytes arrived.")
            return
        }
        try await requireArrived(content, as: path, "For the name \(path.description.debugDescription)")
    }
}
