package import SystemPackage

extension FilePath {
    /// The path's bytes, without the NUL that ends them.
    package var bytes: [UInt8] {
        unsafe withPlatformString { pointer in
            var bytes: [UInt8] = []
            var index = 0
            while unsafe pointer[index] != 0 {
                unsafe bytes.append(UInt8(bitPattern: pointer[index]))
                index += 1
            }
            return bytes
        }
    }

    /// A path of bytes, which must not hold a NUL: what follows one is cut off.
    package init(bytes: some Collection<UInt8>) {
        let terminated = bytes.map(CChar.init(bitPattern:)) + [0]
        self = unsafe terminated.withUnsafeBufferPointer { buffer in
            // The buffer holds at least the NUL, so it has a base address.
            unsafe buffer.baseAddress.map { unsafe FilePath(platformString: $0) } ?? FilePath()
        }
    }
}
