import Crypto
import CurlEngine
import Foundation
import SystemPackage
import TransferCore
import TransportSupport

/// The checksum of a file, from its server or a session.
struct ContentDigest: Codable, Sendable, Hashable {
    /// In the order of preference. The last two detect transmission errors, not deliberate changes.
    enum Algorithm: String, Codable, CaseIterable, Sendable {
        case sha512 = "sha-512"
        case sha256 = "sha-256"
        case sha1 = "sha"
        case md5

        /// The name in receipts and sessions.
        var name: String { self == .sha1 ? "sha1" : rawValue.filter { $0 != "-" } }

        /// The length of a checksum in bytes.
        var length: Int {
            switch self {
            case .sha512: SHA512.byteCount
            case .sha256: SHA256.byteCount
            case .sha1: Insecure.SHA1.byteCount
            case .md5: Insecure.MD5.byteCount
            }
        }
    }

    /// Requests a checksum of the whole file (RFC 9530, section 4, and its predecessor, RFC 3230, section 4.3.1).
    static let request: HTTPHeaders = ["Want-Repr-Digest": "sha-256=10, sha-512=5", "Want-Digest": "sha-256, sha-512;q=0.5"]

    private static let readAtOnce = 1 << 20

    var algorithm: Algorithm
    var digest: Data

    /// The best checksum in a response; nil without a known one.
    ///
    /// - Parameter isWhole: Whether the response contains the whole file, so that a checksum of its content is one of the file.
    init?(_ headers: HTTPHeaders, isWhole: Bool) {
        var found: [Algorithm: Data] = [:]
        for field in headers {
            let name = field.name.lowercased()
            switch name {
            case "repr-digest", "digest", "content-digest":
                guard isWhole || name != "content-digest" else { continue }
                for part in field.value.split(separator: ",") {
                    let member = part.prefix { $0 != ";" }
                    let pair = member.split(separator: "=", maxSplits: 1).map { $0.trimmingCharacters(in: .whitespaces) }
                    // Between colons, as a structured field (RFC 8941, section 3.3.5), or bare.
                    guard pair.count == 2, let algorithm = Algorithm(rawValue: pair[0].lowercased()) else { continue }
                    found[algorithm] = Self.decoded(pair[1].trimmingCharacters(in: CharacterSet(charactersIn: ":")), algorithm)
                }
            case "content-md5" where isWhole: found[.md5] = Self.decoded(field.value, .md5)
            default: break
            }
        }
        guard let best = Algorithm.allCases.first(where: { found[$0] != nil }), let digest = found[best] else { return nil }
        (algorithm, self.digest) = (best, digest)
    }

    /// Parses the form of receipts; nil if the text is not a checksum.
    init?(_ text: String) {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, let algorithm = Algorithm.allCases.first(where: { $0.name == parts[0].lowercased() }),
            parts[1].utf8.count == 2 * algorithm.length
        else { return nil }
        let digits = parts[1].compactMap(\.hexDigitValue)
        guard digits.count == 2 * algorithm.length else { return nil }
        self.algorithm = algorithm
        digest = Data(stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }

    private static func decoded(_ base64: String, _ algorithm: Algorithm) -> Data? {
        Data(base64Encoded: base64).flatMap { $0.count == algorithm.length ? $0 : nil }
    }

    /// The form of receipts: the algorithm, a colon, and hexadecimal digits.
    var text: String {
        let digits = Array("0123456789abcdef")
        return "\(algorithm.name):" + String(digest.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] })
    }

    /// Returns whether a file has this checksum.
    ///
    /// - Parameter progress: Called after each piece that was read.
    /// - Throws: A ``TransferError`` if the file can't be read; `CancellationError`.
    func isThat(of file: FileWriter, size: Int64, on threads: WorkerThreads, progress: () -> Void) async throws -> Bool {
        switch algorithm {
        case .sha512: try await compare(SHA512(), file, size, threads, progress)
        case .sha256: try await compare(SHA256(), file, size, threads, progress)
        case .sha1: try await compare(Insecure.SHA1(), file, size, threads, progress)
        case .md5: try await compare(Insecure.MD5(), file, size, threads, progress)
        }
    }

    private func compare<Hash: HashFunction & Sendable>(
        _ hash: Hash, _ file: FileWriter, _ size: Int64, _ threads: WorkerThreads, _ progress: () -> Void
    ) async throws -> Bool {
        var hash = hash
        var position: Int64 = 0
        while position < size {
            try Task.checkCancellation()
            progress()
            let (start, count) = (position, Int(min(Int64(Self.readAtOnce), size - position)))
            let (next, read) = try await threads.runUnlessCancelled { [hash] in
                var hash = hash
                var bytes = [UInt8](repeating: 0, count: count)
                let read: Int
                do {
                    read = try unsafe bytes.withUnsafeMutableBytes {
                        unsafe try file.descriptor.read(fromAbsoluteOffset: start, into: $0)
                    }
                } catch {
                    throw TransferError(
                        .permanent, .notReadable, "\(file.destination.partPath) can't be read back to compare checksums.",
                        cause: "\(error)")
                }
                hash.update(data: bytes[..<read])
                return (hash, read)
            }
            guard read > 0 else { return false }
            hash = next
            position += Int64(read)
        }
        return Data(hash.finalize()) == digest
    }
}
