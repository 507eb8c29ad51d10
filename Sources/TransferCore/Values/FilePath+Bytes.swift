public import SystemPackage

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

extension FilePath {
    /// The path's bytes, without the final NUL. The bytes can be in any encoding (path_resolution(7)).
    public var bytes: [UInt8] {
        unsafe withPlatformString { pointer in
            unsafe [UInt8](UnsafeRawBufferPointer(start: pointer, count: strlen(pointer)))
        }
    }

    /// Creates a path from bytes, such as the bytes of a ``RemotePath``. A NUL ends the path.
    public init(bytes: some Collection<UInt8>) {
        let terminated = bytes.map(CChar.init(bitPattern:)) + [0]
        self = unsafe terminated.withUnsafeBufferPointer { buffer in
            // The buffer contains at least the NUL, so it has a base address.
            unsafe buffer.baseAddress.map { unsafe FilePath(platformString: $0) } ?? FilePath()
        }
    }
}
