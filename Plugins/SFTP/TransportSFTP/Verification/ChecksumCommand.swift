/// The command that computes checksums at a server: one for any number of files, as a login shell for each would cost more than a small file
/// itself.
///
/// It gets the names by its input, and hands each file to the program as that one's input. So no name, whatever its bytes are, is ever part of
/// a command or of an output, where shells and programs would have their own ideas of hyphens, line feeds, backslashes and quotes.
package enum ChecksumCommand {
    /// What the user's shell runs: a shell that is known (POSIX, sh), whichever the account has. No shell sees more in these quotes than text.
    package static let text: [UInt8] = Array("exec /bin/sh -c '\(script)'".utf8)

    /// What the command says before its results, so that what a start file of the account's shell prints is not taken for any.
    private static let marker = "transferkit-checksums"

    /// Says which program there is, then for each line that it reads a checksum, or that it can't read the file. Ends at once where there is no
    /// program. A name is decoded with a character behind it, as a substitution drops line feeds at the end (POSIX, shell, 2.6.3).
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

    /// The command's input for some files.
    package static func input(_ paths: [[UInt8]]) -> [UInt8] {
        paths.flatMap { path in path.flatMap(encode) + [UInt8(ascii: "\n")] }
    }

    /// A byte as `printf` decodes it again (POSIX, printf, `%b`).
    private static func encode(_ byte: UInt8) -> [UInt8] {
        guard !RemotePlace.isSafe(byte) else { return [byte] }
        return Array("\\0".utf8) + [6, 3, 0].map { UInt8(ascii: "0") + (byte >> $0 & 7) }
    }

    /// What the command printed.
    ///
    /// - Returns: The algorithm, and for each file its checksum if it could be read; nil if it was not this command that printed it.
    package static func results(_ output: [UInt8]) -> (algorithm: ChecksumAlgorithm, digests: [ContentDigest?])? {
        let lines = output.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map { line in
            Substring(decoding: line.last == UInt8(ascii: "\r") ? line.dropLast() : line, as: UTF8.self)
        }
        guard let begin = lines.firstIndex(where: { $0.hasPrefix("\(marker) ") }),
            let algorithm = ChecksumAlgorithm(rawValue: String(lines[begin].dropFirst(marker.count + 1)))
        else { return nil }
        // Behind the last line feed, there is the beginning of a line that was cut off, or nothing.
        return (algorithm, lines[(begin + 1)...].dropLast().map { ContentDigest(algorithm, line: $0) })
    }
}
