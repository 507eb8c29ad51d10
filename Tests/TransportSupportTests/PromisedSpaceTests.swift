import Foundation
import SystemPackage
import Testing
import TransferCore
import TransportSupport

/// Downloads to a file system that can't reserve space.
struct PromisedSpaceTests {
    private let folder: DownloadsFolder
    private let threads = WorkerThreads(limit: 8)
    private let promisedSpace = PromisedSpace()

    init() throws {
        folder = try DownloadsFolder()
    }

    /// - Parameter free: The free space of the disk, in bytes.
    private func open(_ name: String, size: Int64?, from confirmed: Int64 = 0, free: Int64) async throws -> FileWriter {
        var faults = FinalNameFaults()
        faults.refusesReservations = true
        faults.promisedSpace = promisedSpace
        faults.freeSpace = { free }
        return try await FileWriter.open(
            folder.destination(FilePath(name)), from: confirmed, size: size, on: threads, syncing: SyncSchedule(at: .now), faults: faults)
    }

    private static let unit: Int64 = 1 << 30

    /// Only one of the two files fits on the disk. The second download begins when the first download no longer needs space.
    @Test func secondDownloadWaitsForFirst() async throws {
        var first: FileWriter? = try await open("1", size: 2 * Self.unit, free: 3 * Self.unit)
        let error = await #expect(throws: TransferError.self) { try await open("2", size: 2 * Self.unit, free: 3 * Self.unit) }
        #expect(error?.failureClass == .noSpace && error?.code == .diskFull)
        #expect(error?.message.contains("other downloads need") == true, "\(error?.message ?? "")")
        // A download that fits on the disk beside the first one begins.
        _ = try await open("3", size: Self.unit / 2, free: 3 * Self.unit)
        withExtendedLifetime(first) {}
        first = nil
        _ = try await open("2", size: 2 * Self.unit, free: 3 * Self.unit)
    }

    /// Another program can use space that was promised to a download.
    @Test func errorNamesSpaceForOtherDownloads() async throws {
        let first = try await open("1", size: 2 * Self.unit, free: 3 * Self.unit)
        let error = await #expect(throws: TransferError.self) { try await open("2", size: 7, free: 5) }
        #expect(error?.message.contains("needs 7 B more, but its disk has 5 B free, and other downloads need 2.00 GiB. Free") == true)
        withExtendedLifetime(first) {}
    }

    /// Only one of several simultaneous downloads begins.
    @Test func oneOfConcurrentDownloadsBegins() async throws {
        let writers = await withTaskGroup(of: FileWriter?.self) { group in
            for index in 0..<8 {
                group.addTask { try? await open("\(index)", size: 2 * Self.unit, free: 3 * Self.unit) }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(writers.compactMap { $0 }.count == 1)
    }

    /// A server reports an impossible size. While the free space is read for that download, another download begins.
    @Test func impossibleDownloadDoesNotPreventOthers() async throws {
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
        let canContinue = DispatchSemaphore(value: 0)
        var faults = FinalNameFaults()
        faults.promisedSpace = promisedSpace
        faults.freeSpace = {
            arrival.yield()
            canContinue.wait()
            return 3 * Self.unit
        }
        let impossible = Task { [folder, threads, faults] in
            try await FileWriter.open(
                folder.destination("1"), from: 0, size: 1 << 55, on: threads, syncing: SyncSchedule(at: .now), faults: faults)
        }
        for await _ in arrivals { break }
        _ = try await open("2", size: 2 * Self.unit, free: 3 * Self.unit)
        canContinue.signal()
        await #expect(throws: TransferError.self) { try await impossible.value }
    }

    /// Bytes that are on the disk are no longer part of its free space, so they must not be subtracted again.
    @Test func storedBytesCountOnce() async throws {
        let first = try await open("1", size: 2 * Self.unit, from: 0, free: 3 * Self.unit)
        try await first.write(Data(repeating: 7, count: 1_000_000), at: 0)
        try await first.sync(upTo: 1_000_000)
        let free = 3 * Self.unit - 1_000_000
        await #expect(throws: TransferError.self) { try await open("2", size: Self.unit + 1_000_000, free: free) }
        _ = try await open("3", size: Self.unit - 1_000_000, free: free)
        withExtendedLifetime(first) {}
    }

    /// A complete file needs no more space, even while its writer still exists.
    @Test func completeFileNeedsNoSpace() async throws {
        let first = try await open("1", size: 2 * Self.unit, free: 3 * Self.unit)
        try await first.write(Data("hello".utf8), at: 0)
        try await first.finish(size: 5)
        _ = try await open("2", size: 2 * Self.unit, free: 3 * Self.unit)
        withExtendedLifetime(first) {}
    }
}
