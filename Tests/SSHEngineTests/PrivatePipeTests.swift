import SSHEngine
import SystemPackage
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

@Suite struct PrivatePipeTests {
    @Test func programsDoNotInheritPipe() throws {
        let (reading, writing) = try FileDescriptor.privatePipe()
        for end in [reading, writing] { #expect(fcntl(end.rawValue, F_GETFD) == FD_CLOEXEC) }
        try writing.writeAll([7])
        var byte: [UInt8] = [0]
        #expect(try unsafe byte.withUnsafeMutableBytes { try unsafe reading.read(into: $0) } == 1 && byte == [7])
        try writing.close()
        try reading.close()
    }
}
