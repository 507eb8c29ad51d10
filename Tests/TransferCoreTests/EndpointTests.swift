import Foundation
import Testing
import TransferCore

@Suite struct EndpointTests {
    @Test(arguments: ["https://host/files/", "sftp://user@host:22/dir/", "http://127.0.0.1:1080/"])
    func acceptsValidAddresses(_ address: String) throws {
        #expect(try Endpoint(transport: "any", address: address).validate().absoluteString == address)
    }

    @Test(arguments: [
        "", "host/files", "https://", "https:///files", "https://host/#part", "https://host:99999/", "://host",
        "https://user:hunter2@host/",
    ])
    func rejectsInvalidAddresses(_ address: String) throws {
        let error = try #require(throws: TransferError.self) { try Endpoint(transport: "any", address: address).validate() }
        #expect(error.code == .invalidEndpoint)
        #expect(error.failureClass == .permanent)
        #expect(!error.description.contains("hunter2"))
    }
}

@Suite struct SecretTests {
    @Test func descriptionOmitsSecret() {
        let secret = Secret("hunter2")
        var dumped = ""
        dump(secret, to: &dumped)
        for text in ["\(secret)", String(reflecting: secret), dumped, "\([secret])", "\(Optional(secret) as Any)"] {
            #expect(!text.contains("hunter2"))
        }
        #expect(secret.reveal() == "hunter2")
    }
}

@Suite struct RemotePathTests {
    @Test(arguments: ["a", "a/b", "späße.txt", ".hidden", "a..b", "..."])
    func acceptsSafeNames(_ name: String) throws {
        #expect(try RemotePath(name).description == name)
    }

    @Test(arguments: ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/.", "a\0b"])
    func rejectsUnsafeNames(_ name: String) throws {
        let error = try #require(throws: TransferError.self) { try RemotePath(name) }
        #expect(error.code == .unsafeName)
        #expect(error.message.contains("The remote name \"\" is empty.") == name.isEmpty, "\(error.message)")
    }

    @Test func keepsBytesThatAreNotUTF8() throws {
        let bytes: [UInt8] = [0x61, 0xFF, 0x2F, 0xFE]
        let path = try RemotePath(bytes: bytes)
        #expect(path.bytes == bytes)
        #expect(path.lastComponent == [0xFE])
    }
}
