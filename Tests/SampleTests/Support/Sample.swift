import Foundation
import ProcessFixture
import SystemPackage

/// A running sample, whose output the test reads line by line. The sample is killed when this object is released.
final class Sample: Sendable {
    /// The remaining lines of the standard output, for one consumer.
    let lines: AsyncStream<String>
    private let program: StartedProgram
    private let end: Task<Int32?, Never>

    /// Starts a sample.
    ///
    /// - Parameters:
    ///   - name: The name of the sample's program, or the path of another program.
    ///   - arguments: The first arguments of the program.
    ///   - folder: The folder for the sample's queue, and for a file with its standard error.
    ///   - rest: The arguments after `arguments`.
    init(_ name: String, _ arguments: String..., in folder: SampleFolder, rest: [String] = []) throws {
        // Without stdbuf(1), the C library would buffer the output, because it goes to a pipe.
        let path = name.hasPrefix("/") ? name : Self.folder.appending(path: name).path
        program = try StartedProgram(
            "stdbuf", ["--output=L", path] + arguments + rest, environment: ["XDG_STATE_HOME": folder.url.path, "LOG_LEVEL": "warning"],
            errors: FilePath(folder.url.appending(path: "errors").path))
        let (lines, sink) = AsyncStream.makeStream(of: String.self)
        let (ends, endSink) = AsyncStream.makeStream(of: Int32?.self)
        self.lines = lines
        end = Task {
            for await status in ends { return status }
            return nil
        }
        Thread.detachNewThread { [program] in
            var text = Data()
            while let received = try? program.read(), !received.isEmpty {
                text += received
                while let index = text.firstIndex(of: UInt8(ascii: "\n")) {
                    sink.yield(String(decoding: text[..<index], as: UTF8.self))
                    text = Data(text[(index + 1)...])
                }
            }
            sink.finish()
            endSink.yield(program.waitForEnd()?.status)
            endSink.finish()
        }
    }

    deinit {
        program.kill()
    }

    /// The folder of the built programs, which also contains the test program.
    static let folder = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent()

    /// Returns the lines up to the first line that begins with a prefix.
    func lines(through prefix: String) async -> [String] {
        var read: [String] = []
        for await line in lines {
            read.append(line)
            if line.hasPrefix(prefix) { break }
        }
        return read
    }

    /// Returns the remaining lines, except reports of progress, and the exit status or the signal that killed the sample.
    func finish() async -> (lines: [String], status: Int32?) {
        var read: [String] = []
        for await line in lines where !line.isProgress { read.append(line) }
        return (read, await end.value)
    }

    func send(_ signal: Int32) {
        program.send(signal)
    }

    func input(_ line: String) throws {
        try program.write(line + "\n")
    }

    func endInput() {
        program.closeInput()
    }
}

extension String {
    /// Whether a line reports progress. The number of such lines depends on the machine's speed.
    var isProgress: Bool { hasSuffix(" %") || hasSuffix(" bytes sent") }
}
