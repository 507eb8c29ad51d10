import Testing
import TransferCore
import TransportSFTP

@Suite struct ErrorTests {
    @Test(arguments: [
        (Status(.noSuchFile), FileUse.download, FailureClass.permanent), (Status(.noSuchPath), .download, .permanent),
        (Status(.noSuchFile), .upload, .permanent), (Status(.permissionDenied), .upload, .permanent),
        (Status(.permissionDenied), .download, .permanent), (Status(.writeProtected), .upload, .permanent),
        (Status(.noSpace), .upload, .remoteFull), (Status(.quotaExceeded), .upload, .remoteFull),
        (Status(.failure, "write: No space left on device"), .upload, .remoteFull),
        (Status(.failure, "Disk quota exceeded"), .upload, .remoteFull),
        (Status(.failure, "Failure"), .upload, .transient), (Status(.badMessage), .upload, .protocolViolation),
        (Status(.noConnection), .upload, .transient), (Status(.connectionLost), .download, .transient),
        (Status(.noMedia), .download, .transient), (Status(.lockConflict), .upload, .transient), (Status(.fileExists), .upload, .permanent),
        (Status(.unsupported), .upload, .unsupported), (Status(.notAFolder), .upload, .permanent),
        (Status(.invalidName), .upload, .permanent), (Status(.linkLoop), .upload, .permanent),
        (Status(.invalidHandle), .upload, .protocolViolation), (Status(.endOfFile), .download, .protocolViolation),
        (Status(.init(rawValue: 99)), .upload, .protocolViolation),
    ])
    func classifiesEachStatus(status: Status, use: FileUse, failureClass: FailureClass) {
        let error = status.transferError("reel.mov", use, at: "sftp.example.com")
        #expect(error.failureClass == failureClass)
        #expect(error.message.contains("reel.mov") && error.message.contains("sftp.example.com"))
        #expect(error.cause == (status.message.isEmpty ? nil : status.message))
    }

    @Test func parsesAddresses() throws {
        let full = try SFTPAddress(.sftp("sftp://me@sftp.example.com:2222/in%20coming/%FF/"))
        #expect(full.host == "sftp.example.com" && full.port == 2222 && full.user == "me")
        #expect(full.folder == Array("/in coming/".utf8) + [0xFF] + Array("/".utf8))
        #expect(try SFTPAddress(.sftp("sftp://me@host")).folder == Array("/".utf8))
        #expect(try SFTPAddress(.sftp("sftp://me@host/~/")).folder == [])
        #expect(try SFTPAddress(.sftp("sftp://me@host/~/in/")).folder == Array("in/".utf8))
        #expect(try SFTPAddress(.sftp("sftp://me@[::1]/")).host == "::1")
        #expect(try SFTPAddress(.sftp("sftp://me@host/")).port == 22)
    }

    @Test(arguments: [
        Endpoint.sftp("https://host/"), .sftp("sftp://host/a%00b"), .sftp("sftp://host/a/../b/"), .sftp("sftp://host/~/.."),
        .sftp("sftp://host/%2E%2e/b"), .sftp("sftp://host/?x=1"), .sftp("sftp://me:secret@host/"),
        Endpoint(transport: .sftp, address: "sftp://host/", settings: ["hostKey": "none"]),
        Endpoint(transport: .sftp, address: "sftp://host/", settings: ["maxConnections": "0"]),
        Endpoint(transport: .sftp, address: "sftp://host/", settings: ["typo": "x"]),
        Endpoint(transport: .sftp, address: "sftp://host/", settings: ["allowSHA1": "yes"]),
        Endpoint(transport: .sftp, address: "sftp://host/", settings: ["keepTimes": "1"]),
        Endpoint(transport: .sftp, address: "sftp://host/", settings: ["keepModes": ""]),
        Endpoint(transport: .sftp, address: "sftp://host/", settings: ["parallelThreshold": "0"]),
        .sftp("sftp://host/", credentials: .bearer(.environment("T"))),
    ])
    func rejectsInvalidEndpoints(endpoint: Endpoint) {
        let error = #expect(throws: TransferError.self) { try SFTPTransport.validate(endpoint) }
        #expect(error?.message.contains("secret") == false)
    }
}
