import TransferCore

@testable import HTTPSupport
@testable import TransportHTTP

/// Targets for the listings of WebDAV servers.
enum WebDAVTargets {
    /// The first byte of the input selects a buffer size. The rest is a response to `PROPFIND`, which the reader receives in buffers of this size.
    static func listing(_ input: [UInt8]) {
        let document = Array(input.dropFirst())
        let size = Int(input.first ?? 0) % 64 + 1
        let buffers = stride(from: 0, to: document.count, by: size).map { document[$0..<min($0 + size, document.count)] }
        let (whole, divided) = (read([document[...]]), read(buffers))
        // If a document has several errors, the two readings can fail with different errors, because the reader parses a buffer completely before it
        // checks the members in the buffer.
        require((whole.error == nil) == (divided.error == nil), "The buffer size causes no error: \(String(describing: whole.error))")
        // Before an error, a buffer can contain complete members that are not returned.
        if whole.error == nil { require(whole.members == divided.members, "The buffer size does not change the members.") }
        guard let folder = ListedFolder(url: "https://example.com/dav/f%20x/?key=1") else { return require(false, "The URL is valid.") }
        for member in whole.members + divided.members {
            require(!member.href.isEmpty && member.size ?? 0 >= 0, "A member has a URL, and its size is not negative.")
            guard case .member(let name, _) = folder.place(of: member.href) else { continue }
            require(!name.isEmpty, "A name is not empty.")
            guard !name.contains(UInt8(ascii: "/")) else { continue }
            let href = Array("/dav/f%20x/\(RemotePath.percentEncoded(name))".utf8)
            require(folder.place(of: href) == .member(name: name, endsInSlash: false), "An encoded name is decoded to the same name.")
        }
    }

    private static func read(_ buffers: [ArraySlice<UInt8>]) -> (members: [MultistatusReader.Member], error: DAVElementReader.Malformed?) {
        var reader = MultistatusReader()
        var members: [MultistatusReader.Member] = []
        do throws(DAVElementReader.Malformed) {
            for buffer in buffers { members += try reader.read(buffer) }
            try reader.finish()
            return (members, nil)
        } catch {
            return (members, error)
        }
    }
}
