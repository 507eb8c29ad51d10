import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The arguments of this process as strings that preserve every byte.
///
/// File names are bytes, but Swift's `CommandLine.arguments` replaces invalid UTF-8, so files with such names can't be found. Here, each
/// byte outside a valid UTF-8 sequence becomes a scalar of a private-use range (Unicode 16, section 23.5), which ``bytes(of:)`` converts
/// back. Scalars of this range in an argument are encoded byte by byte in the same way, so the encoding is unambiguous.
package enum ProcessArguments: Sendable {
    private static let escapes: ClosedRange<UInt32> = 0x10_F700...0x10_F7FF

    /// The arguments after the program's name.
    package static var current: [String] { words.dropFirst().map(string) }

    /// The words of this process's command line, including the program's name.
    ///
    /// On Linux, the kernel reports the words (proc_pid_cmdline(5)). A statically linked standard library looks for the words next to the
    /// environment, but a preloaded library can move the environment with setenv(3) before `main`.
    static let words: [[UInt8]] = {
        let reported = (try? FileDescriptor.open(FilePath("/proc/self/cmdline"), .readOnly)).flatMap { file in
            try? file.closeAfter { try readToEnd(file) }
        }
        guard let reported, !reported.isEmpty else { return standardLibraryWords }
        let words = split(reported)
        return startsWithLoader(words) ? withoutLoader(words, program: standardLibraryWords) : words
    }()

    private static var standardLibraryWords: [[UInt8]] {
        (0..<Int(CommandLine.argc)).compactMap { index in
            unsafe CommandLine.unsafeArgv[index].map { argument in
                let length = unsafe strlen(argument)
                return (0..<length).map { unsafe UInt8(bitPattern: argument[$0]) }
            }
        }
    }

    /// Whether a command line begins with the dynamic loader (ld.so(8)), as in `/lib64/ld-linux-x86-64.so.2 ./transferq list`.
    private static func startsWithLoader(_ words: [[UInt8]]) -> Bool {
        guard let name = words.first?.split(separator: UInt8(ascii: "/")).last else { return false }
        let text = String(decoding: name, as: UTF8.self)
        return text.hasPrefix("ld") && text.contains(".so")
    }

    /// Removes the loader and its options from a command line.
    ///
    /// - Parameter program: The words that the loader passed to the program.
    /// - Returns: `program`, or all words if they do not end with it.
    package static func withoutLoader(_ words: [[UInt8]], program: [[UInt8]]) -> [[UInt8]] {
        let isSuffix = !program.isEmpty && program.count < words.count && words.suffix(program.count).elementsEqual(program)
        return isSuffix ? program : words
    }

    private static func readToEnd(_ file: FileDescriptor) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = try unsafe buffer.withUnsafeMutableBytes { unsafe try file.read(into: $0) }
            if count == 0 { return bytes }
            bytes += buffer.prefix(count)
        }
    }

    /// Splits a command line, in which a NUL byte ends each word.
    package static func split(_ line: [UInt8]) -> [[UInt8]] {
        let words = line.split(separator: 0, omittingEmptySubsequences: false).map(Array.init)
        return line.last == 0 ? words.dropLast() : words
    }

    /// Encodes bytes as a string.
    package static func string(of bytes: [UInt8]) -> String {
        var scalars = String.UnicodeScalarView()
        var parser = Unicode.UTF8.ForwardParser()
        var input = bytes.makeIterator()
        var position = 0
        while true {
            let length: Int
            switch parser.parseScalar(from: &input) {
            case .valid(let encoded):
                let scalar = Unicode.UTF8.decode(encoded)
                length = encoded.count
                if !escapes.contains(scalar.value) {
                    scalars.append(scalar)
                    position += length
                    continue
                }
            case .error(let invalid):
                length = invalid
            case .emptyInput:
                return String(scalars)
            }
            for byte in bytes[position..<position + length] {
                // Never nil: the range is in plane 16.
                if let scalar = Unicode.Scalar(escapes.lowerBound + UInt32(byte)) { scalars.append(scalar) }
            }
            position += length
        }
    }

    /// Returns the bytes that ``string(of:)`` encoded as a string.
    package static func bytes(of argument: String) -> [UInt8] {
        argument.unicodeScalars.flatMap { scalar -> [UInt8] in
            escapes.contains(scalar.value) ? [UInt8(scalar.value - escapes.lowerBound)] : Array(String(scalar).utf8)
        }
    }

    /// Converts text that contains encoded arguments for output: replaces invalid UTF-8 with U+FFFD.
    static func shown(_ text: String) -> String { isText(text) ? text : String(decoding: bytes(of: text), as: UTF8.self) }

    /// Whether an argument was valid UTF-8 without scalars of the private-use range.
    static func isText(_ argument: String) -> Bool {
        !argument.unicodeScalars.contains { escapes.contains($0.value) }
    }
}
