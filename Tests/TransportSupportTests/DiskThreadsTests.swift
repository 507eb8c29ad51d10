import Dispatch
import SystemPackage
import Testing
import TransferCore
import TransportSupport

@Suite(.timeLimit(.minutes(10))) struct DiskThreadsTests {
    private let disks = DiskThreads(limit: 1)

    @Test func eachDiskHasSeparateThreads() {
        let (one, other) = (disks.threads(forFilesIn: "/one"), disks.threads(forFilesIn: "/other"))
        #expect(one !== other)
        #expect(one === disks.threads(forFilesIn: "/one"))
    }

    /// If retries did not reuse the hanging threads, each retry would create another thread that hangs.
    @Test func keepsThreadsOfHangingDisk() async throws {
        let gate = DispatchSemaphore(value: 0)
        weak var hanging: WorkerThreads?
        do {
            let threads = disks.threads(forFilesIn: "/one")
            hanging = threads
            try threads.submit { gate.wait() }
        }
        #expect(hanging != nil)
        let again = disks.threads(forFilesIn: "/one")
        #expect(hanging === again)
        gate.signal()
        try await again.run {}
    }

    @Test func releasesUnusedThreads() async throws {
        weak var idle: WorkerThreads?
        do {
            let threads = disks.threads(forFilesIn: "/one")
            idle = threads
            try await threads.run {}
        }
        #expect(idle == nil)
    }
}
