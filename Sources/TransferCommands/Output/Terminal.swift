import Dispatch
import Locking
import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Standard error: diagnostics that scroll, and on a terminal a footer below them that is drawn over.
final class Terminal: Sendable {
    private struct State: Sendable {
        var footer: [String] = []
    }

    private let descriptor: FileDescriptor
    private let queue = DispatchQueue(label: "transferq.terminal")
    private let state = Locked(State())

    init(_ descriptor: FileDescriptor) {
        self.descriptor = descriptor
    }

    /// Whether a person looks at it.
    var isTerminal: Bool { isatty(descriptor.rawValue) == 1 }

    /// The size of the terminal now (ioctl_tty(2), TIOCGWINSZ); that of a DEC VT100 if it does not tell.
    var size: (columns: Int, rows: Int) {
        var size = winsize()
        guard unsafe ioctl(descriptor.rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return (80, 24) }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Writes lines above the footer, and returns once they are written.
    func write(_ lines: String...) async {
        await draw(lines)
    }

    /// Writes a line above the footer, some time soon: for callers that can't wait.
    func post(_ line: String) {
        queue.async { [self] in drawNow([line], footer: nil) }
    }

    /// Writes lines above the footer and, if one is given, replaces the footer.
    func draw(_ lines: [String], footer: [String]? = nil) async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                drawNow(lines, footer: footer)
                continuation.resume()
            }
        }
    }

    /// Returns once everything posted is written.
    func flush() async {
        await draw([])
    }

    private func drawNow(_ lines: [String], footer: [String]?) {
        let columns = size.columns
        let text = state.withLock { state in
            if lines.isEmpty, footer == nil { return "" }
            var text = ""
            // A terminal that became narrower since has broken the lines that were too long for it.
            let rows = state.footer.reduce(0) { $0 + max(1, ($1.columns + columns - 1) / columns) }
            // ECMA-48: cursor up, then erase to the end of the screen.
            if rows > 0 { text += "\u{1B}[\(rows)A\r\u{1B}[J" }
            if let footer { state.footer = footer }
            for line in lines + state.footer { text += line + "\n" }
            return text
        }
        // There is nowhere left to complain to.
        _ = try? descriptor.writeAll(text.utf8)
    }
}
