import TransferKit

#if canImport(Glibc)
    import Glibc
#endif

/// The heap of the C library, which keeps freed memory for later allocations. The methods have an effect only with glibc.
enum HeapMemory {
    /// The number of removed sessions after which freed memory is returned to the system.
    private static let removals = 10_000
    /// The delay before freed memory is returned. If the number of removals is reached again during the delay, the delay restarts.
    private static let delay = Duration.seconds(5)

    /// Makes all threads allocate from two arenas (mallopt(3), M_ARENA_MAX). By default, glibc creates up to eight arenas for each processor, and
    /// each arena keeps as much memory as it needed at its peak. Call this method before other threads allocate memory.
    static func shareArenas() {
        #if canImport(Glibc)
            guard let function = unsafe dlsym(nil, "mallopt") else { return }
            // The header malloc.h is not part of the module Glibc. It declares `int mallopt(int, int)` and `M_ARENA_MAX` as -8.
            let mallopt = unsafe unsafeBitCast(function, to: (@convention(c) (Int32, Int32) -> Int32).self)
            _ = mallopt(-8, 2)
        #endif
    }

    /// Returns freed memory to the system (malloc_trim(3)) each time ``removals`` sessions have been removed, after ``delay``. Ends when the queue
    /// shuts down.
    static func returnFreedMemory(afterRemovalsFrom queue: TransferQueue) async {
        var removed = 0
        var pending: Task<Void, Never>?
        for await event in queue.events {
            guard case .removed(let ids, _) = event.kind else { continue }
            removed += ids.count
            guard removed >= removals else { continue }
            removed = 0
            pending?.cancel()
            pending = Task {
                guard (try? await Task.sleep(for: delay)) != nil else { return }
                await BlockingIO.run { returnFreedMemory() }
            }
        }
        pending?.cancel()
    }

    private static func returnFreedMemory() {
        #if canImport(Glibc)
            guard let function = unsafe dlsym(nil, "malloc_trim") else { return }
            // malloc.h declares `int malloc_trim(size_t)`.
            let malloc_trim = unsafe unsafeBitCast(function, to: (@convention(c) (Int) -> Int32).self)
            _ = malloc_trim(0)
        #endif
    }
}
