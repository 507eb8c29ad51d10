import Dispatch
import Foundation
import Locking
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A pseudoterminal (pty(7)) that records the program's output.
final class PseudoTerminal: Sendable {
    /// The end that the program uses.
    let terminal: FileDescriptor
    private let observer: FileDescriptor
    private let drawing: Locked<[UInt8]>
    private let reading: Task<Void, Never>

    init(columns: UInt16, rows: UInt16 = 24) throws {
        var (observer, descriptor): (CInt, CInt) = (-1, -1)
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        guard unsafe openpty(&observer, &descriptor, nil, nil, &size) == 0 else { throw Errno(rawValue: errno) }
        // A program that inherited an end would keep the terminal open.
        for end in [observer, descriptor] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        terminal = FileDescriptor(rawValue: descriptor)
        let source = FileDescriptor(rawValue: observer)
        self.observer = source
        let drawing = Locked<[UInt8]>([])
        self.drawing = drawing
        reading = Task {
            await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    var bytes = [UInt8](repeating: 0, count: 4096)
                    // Reading fails with EIO after the last program has closed its end.
                    while let count = try? unsafe bytes.withUnsafeMutableBytes({ unsafe try source.read(into: $0) }), count > 0 {
                        drawing.withLock { $0 += bytes.prefix(count) }
                    }
                    continuation.resume()
                }
            }
        }
    }

    var drawn: String { String(decoding: drawing.withLock { $0 }, as: UTF8.self) }

    func waitFor(_ text: String) async throws {
        while !drawn.contains(text) {
            try Task.checkCancellation()
            await Task.yield()
        }
    }

    /// Changes the size of the terminal (ioctl_tty(2), TIOCSWINSZ).
    func resize(columns: UInt16, rows: UInt16 = 24) {
        var size = winsize(ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0)
        _ = unsafe ioctl(terminal.rawValue, UInt(TIOCSWINSZ), &size)
    }

    deinit { try? observer.close() }

    /// Waits until all programs have closed the terminal, and returns its output.
    func finish() async throws -> String {
        try terminal.close()
        await reading.value
        return drawn
    }
}
