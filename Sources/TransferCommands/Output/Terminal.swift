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

/// Writes diagnostics to a terminal or stream, normally standard error, and keeps a footer below them.
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

    var isTerminal: Bool { isatty(descriptor.rawValue) == 1 }

    static var hasColor: Bool {
        let environment = ProcessInfo.processInfo.environment
        // no-color.org: disables colour if set and not empty. terminfo(5): a dumb terminal has no colours.
        return environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
    }

    /// The current size of the terminal; 80 columns and 24 rows if it is unknown.
    var size: (columns: Int, rows: Int) { Self.size(of: descriptor) ?? (80, 24) }

    /// The current size of a terminal (ioctl_tty(2), TIOCGWINSZ); nil if it is unknown, or the descriptor is not a terminal.
    static func size(of descriptor: FileDescriptor) -> (columns: Int, rows: Int)? {
        var size = winsize()
        guard unsafe ioctl(descriptor.rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0 else { return nil }
        return (Int(size.ws_col), Int(size.ws_row))
    }

    /// Writes lines above the footer and returns when they are written.
    func write(_ lines: String...) async {
        await draw(lines)
    }

    /// Writes a line above the footer asynchronously, for callers that can't wait.
    func post(_ line: String) {
        queue.async { [self] in drawNow([line], footer: nil) }
    }

    /// Writes lines above the footer, and replaces the footer if a new one is given.
    func draw(_ lines: [String], footer: [String]? = nil) async {
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                drawNow(lines, footer: footer)
                continuation.resume()
            }
        }
    }

    /// Waits until all posted lines are written.
    func flush() async {
        await draw([])
    }

    private func drawNow(_ lines: [String], footer: [String]?) {
        let columns = size.columns
        let text = state.withLock { state in
            if lines.isEmpty, footer == nil { return "" }
            var text = ""
            // If the terminal has become narrower, it has wrapped the lines of the footer.
            let rows = state.footer.reduce(0) { $0 + max(1, ($1.columns + columns - 1) / columns) }
            // ECMA-48: cursor up, then erase to the end of the screen.
            if rows > 0 { text += "\u{1B}[\(rows)A\r\u{1B}[J" }
            if let footer { state.footer = footer }
            for line in lines + state.footer { text += line + "\n" }
            return text
        }
        // Ignores errors, because there is no other stream to report them on.
        _ = try? descriptor.writeAll(text.utf8)
    }
}
