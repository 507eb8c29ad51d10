package import TransportSupport

/// The command that computes checksums on a server. One command handles many files, because starting a login shell can take longer than
/// sending a small file.
///
/// The command reads the names from its input, and passes each file's content to the checksum program. No name is an argument, because shells
/// and programs could misinterpret hyphens, line feeds, backslashes and quotes in names.
package enum ChecksumCommand {
    /// The user's shell may not be a POSIX shell, so the command runs `sh`. All shells treat text in single quotes literally.
    package static let text: [UInt8] = Array("exec /bin/sh -c '\(script)'".utf8)

    /// Separates the results from output of the shell's startup files.
    private static let marker = "transferkit-checksums"

    /// Decodes each name with an additional slash at its end, because a command substitution drops trailing line feeds (POSIX, shell,
    /// 2.6.3).
    private static let script = """
        LC_ALL=C; export LC_ALL; \
        if command -v sha256sum >/dev/null 2>&1; then kind=sha256; sum() { sha256sum; }; \
        elif command -v shasum >/dev/null 2>&1; then kind=sha256; sum() { shasum -a 256; }; \
        elif command -v md5sum >/dev/null 2>&1; then kind=md5; sum() { md5sum; }; \
        else exit 3; fi; \
        echo "\(marker) $kind"; \
        while IFS= read -r line; do \
        name=$(printf "%b/" "$line"); \
        sum 2>/dev/null <"${name%/}" || echo unreadable; \
        done
        """

    /// For each file, a line with its encoded path.
    package static func input(_ paths: [[UInt8]]) -> [UInt8] {
        paths.flatMap { path in path.flatMap(encode) + [UInt8(ascii: "\n")] }
    }

    /// For `printf` (POSIX, printf, `%b`).
    private static func encode(_ byte: UInt8) -> [UInt8] {
        guard !RemoteFilePaths.isSafe(byte) else { return [byte] }
        return Array("\\0".utf8) + [6, 3, 0].map { UInt8(ascii: "0") + (byte >> $0 & 7) }
    }

    /// - Returns: The algorithm, and one element for each file: its checksum, or nil if the server can't read it. If the output is not from
    ///   this command, the whole result is nil.
    package static func results(_ output: [UInt8]) -> (algorithm: ChecksumAlgorithm, digests: [Checksum?])? {
        let lines = output.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            Substring(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
        }
        guard let begin = lines.firstIndex(where: { $0.hasPrefix("\(marker) ") }),
            let algorithm = ChecksumAlgorithm(rawValue: String(lines[begin].dropFirst(marker.count + 1)))
        else { return nil }
        // The text after the last line feed is empty or a truncated line.
        return (algorithm, lines[(begin + 1)...].dropLast().map { Checksum(algorithm, digits: $0.prefix { $0 != " " }) })
    }
}
