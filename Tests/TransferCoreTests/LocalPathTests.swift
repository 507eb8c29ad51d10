import Foundation
import SystemPackage
import Testing
import TransferCore

@Suite struct LocalPathTests {
    @Test(arguments: [
        ("file:///tmp/a%20b", "/tmp/a b"), ("file:///tmp/%C3%A9", "/tmp/é"), ("file:///tmp/folder/", "/tmp/folder"),
        ("https://host/a", "https://host/a"),
    ])
    func convertsURLToPath(url: String, path: String) throws {
        #expect(try #require(URL(string: url)).filePath == FilePath(path))
    }

    /// A file name can contain any bytes except slash and NUL.
    @Test func keepsBytesThatAreNotUTF8() throws {
        #expect(try #require(URL(string: "file:///tmp/%FF")).filePath.bytes == Array("/tmp/".utf8) + [0xFF])
    }
}
