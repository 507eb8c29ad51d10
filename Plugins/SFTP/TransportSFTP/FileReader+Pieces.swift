import SystemPackage
import TransferCore
import TransportSupport

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension FileReader {
    /// Reads consecutive pieces of the file. Blocks.
    ///
    /// - Throws: A ``TransferError``: ``FailureClass/sourceChanged`` if the file ends early.
    func piecesNow(_ range: Range<Int64>, of size: Int) throws(TransferError) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var offset = range.lowerBound
        while offset < range.upperBound {
            let count = Int(min(Int64(size), range.upperBound - offset))
            pieces.append(try pieceNow(count, at: offset))
            offset += Int64(count)
        }
        return pieces
    }

    private func pieceNow(_ count: Int, at offset: Int64) throws(TransferError) -> [UInt8] {
        var failure: CInt = 0
        let piece = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let rest = unsafe UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(buffer)[filled..<count])
                let result = unsafe pread(descriptor.rawValue, rest.baseAddress, rest.count, off_t(offset) + off_t(filled))
                if result < 0, errno == EINTR { continue }
                if result < 0 { failure = errno }
                guard result > 0 else { return }
                filled += result
            }
        }
        guard failure == 0 else { throw .sourceUnavailable(source.path, errno: failure) }
        guard piece.count == count else { throw endedEarly(at: offset + Int64(piece.count)) }
        return piece
    }
}
