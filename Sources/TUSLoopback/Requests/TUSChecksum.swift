import Crypto
import Foundation

import struct NIOCore.ByteBuffer

/// The supported checksum algorithms (tus 1.0.0, "Checksum").
enum TUSChecksumAlgorithm: String, CaseIterable, Sendable {
    case sha1, sha256, md5

    /// The value of `Tus-Checksum-Algorithm`.
    static let advertised = allCases.map(\.rawValue).joined(separator: ",")
}

/// The value of `Upload-Checksum`: an algorithm and a checksum in base64.
struct TUSChecksum: Hashable, Sendable {
    let algorithm: TUSChecksumAlgorithm
    let value: Data

    /// - Returns: Nil if the header is malformed or the algorithm is unknown.
    init?(_ header: String) {
        let words = header.split(separator: " ").map(String.init)
        guard words.count == 2, let algorithm = TUSChecksumAlgorithm(rawValue: words[0]), let value = Data(base64Encoded: words[1]) else {
            return nil
        }
        self.algorithm = algorithm
        self.value = value
    }
}

/// The location of a body's checksum.
enum ChecksumLocation: Hashable, Sendable {
    /// In the headers.
    case header(TUSChecksum)
    /// In a trailer after the body.
    case trailer
}

/// Computes the checksum of a body while the body arrives.
struct ContentHashes {
    private var hashes: [TUSChecksumAlgorithm: any HashFunction]

    /// Starts the hash for a checksum. The algorithm of a trailer is not known in advance, so a trailer requires the hashes of all algorithms.
    init(for location: ChecksumLocation) {
        let algorithms: [TUSChecksumAlgorithm] =
            switch location {
            case .header(let checksum): [checksum.algorithm]
            case .trailer: TUSChecksumAlgorithm.allCases
            }
        hashes = Dictionary(uniqueKeysWithValues: algorithms.map { ($0, Self.hash($0)) })
    }

    private static func hash(_ algorithm: TUSChecksumAlgorithm) -> any HashFunction {
        switch algorithm {
        case .sha1: Insecure.SHA1()
        case .sha256: SHA256()
        case .md5: Insecure.MD5()
        }
    }

    mutating func update(_ bytes: ByteBuffer) {
        for algorithm in hashes.keys {
            unsafe bytes.withUnsafeReadableBytes { unsafe hashes[algorithm]?.update(bufferPointer: $0) }
        }
    }

    func matches(_ checksum: TUSChecksum) -> Bool {
        hashes[checksum.algorithm].map { value(of: $0) == checksum.value } ?? false
    }

    private func value(of hash: some HashFunction) -> Data { Data(hash.finalize()) }
}
