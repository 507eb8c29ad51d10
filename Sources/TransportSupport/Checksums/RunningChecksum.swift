import Crypto

/// Computes the checksum of bytes that arrive one buffer at a time.
package struct RunningChecksum: Sendable {
    package let algorithm: ChecksumAlgorithm
    private var hash: any HashFunction & Sendable

    package init(_ algorithm: ChecksumAlgorithm) {
        self.algorithm = algorithm
        hash =
            switch algorithm {
            case .sha512: SHA512()
            case .sha256: SHA256()
            case .sha1: Insecure.SHA1()
            case .md5: Insecure.MD5()
            }
    }

    package mutating func update(_ bytes: UnsafeRawBufferPointer) { unsafe hash.update(bufferPointer: bytes) }

    package mutating func update(_ bytes: [UInt8]) { unsafe bytes.withUnsafeBytes { unsafe update($0) } }

    /// The checksum of all bytes so far, as bytes.
    package var digest: [UInt8] { Self.digest(hash) }

    private static func digest(_ hash: some HashFunction) -> [UInt8] { Array(hash.finalize()) }

    /// The checksum of all bytes so far.
    package var checksum: Checksum { Checksum(computed: algorithm, digest) }
}
