import Foundation
import SystemPackage
import Testing
import TransferCore

#if canImport(Glibc)
    import Glibc

    @Suite struct FileBlocksTests {
        /// The reservation fails because the disk is full or the user's quota is exhausted. By then, the system may have reserved some of
        /// the blocks.
        @Test(arguments: [ENOSPC, EDQUOT]) func releasesBlocksOfFailedReservation(code: CInt) throws {
            let path = FilePath(FileManager.default.temporaryDirectory.appending(path: "blocks-\(UUID().uuidString)").path)
            let file = try FileDescriptor.open(
                path, .readWrite, options: [.create, .exclusiveCreate, .closeOnExec], permissions: .ownerReadWrite)
            defer {
                try? file.close()
                try? FileManager.default.removeItem(atPath: path.string)
            }
            try file.writeAll(Array("hello".utf8))
            let before = try blocks(of: file)
            #expect(throws: Errno.noSpace) {
                try FileBlocks.reserve(file, 8 << 20) { () -> CInt in
                    guard (try? FileBlocks.reserve(file, 4 << 20)) == true else { return EIO }
                    return code
                }
            }
            #expect(try blocks(of: file) == before)
        }

        /// If the file system can't reserve blocks, the file is written without a reservation.
        @Test func toleratesFileSystemWithoutReservations() throws {
            #expect(try !FileBlocks.reserve(.standardInput, 8 << 20) { EOPNOTSUPP })
        }

        private func blocks(of file: FileDescriptor) throws -> Int64 {
            var found = stat()
            guard unsafe fstat(file.rawValue, &found) == 0 else { throw Errno(rawValue: errno) }
            return Int64(found.st_blocks)
        }
    }
#endif
