import SystemPackage
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A program that runs once for each event. The program receives the event only on its standard input, never in
/// its arguments or in a shell command.
struct HookProgram: Sendable {
    let program: FilePath
    let arguments: [[UInt8]]

    /// Runs the program. Blocks until it has ended.
    ///
    /// - Parameter input: The event, as the program's standard input.
    /// - Returns: Why the program did not handle the event; nil if its exit status is 0.
    func run(_ input: [UInt8]) -> String? {
        // A program that does not read its input must not end this process.
        signal(SIGPIPE, SIG_IGN)
        let process: pid_t
        do {
            let (reading, writing) = try FileDescriptor.pipe()
            defer { try? writing.close() }
            do {
                // Closes this process's copy of the reading end, so that a write fails once the program has ended.
                defer { try? reading.close() }
                process = try ChildProgram.start(program, arguments, descriptors: [0: .descriptor(reading)])
            }
            // A program may exit without reading its input, so a write error does not matter.
            _ = try? writing.writeAll(input)
        } catch {
            return "Cannot start \(program): \(error)."
        }
        return ChildProgram.failure(of: process).map { "\(program) did not handle the event: \($0)." }
    }
}
