import ScriptedHTTP
import Testing
import TransferCore
import TransportHTTP

@Suite struct FolderCreationTests {
    private func transfer(
        _ path: String, to address: String = "/files/", mode: String = "put", _ script: @escaping ScriptedServer.Script
    ) throws -> TestTransfer {
        var transfer = try TestTransfer(mode, address, size: 3, script)
        transfer.endpoint.settings = HTTPOptions(webDAV: true).settings
        transfer.remotePath = path
        return transfer
    }

    private func requests(_ transfer: TestTransfer) -> [String] { transfer.server.requests.map { "\($0.method) \($0.path)" } }

    @Test func createsFoldersFromInnermost() async throws {
        let server = FolderServer()
        let transfer = try transfer("a/b/c.bin") { request, _ in server.answer(request) }
        _ = try await transfer.run()
        #expect(
            requests(transfer) == [
                "MKCOL /files/a/b/", "MKCOL /files/a/", "MKCOL /files/a/b/", "PUT /files/a/b/c.bin",
            ])
        #expect(transfer.server.requests[0].headers["content-length"] == nil && transfer.server.requests[0].body.isEmpty)
        await transfer.end()
    }

    @Test func createsFolderOncePerSession() async throws {
        let server = FolderServer(["/files/", "/files/a/"])
        var transfer = try transfer("a/1") { request, _ in server.answer(request) }
        _ = try await transfer.run()
        transfer.remotePath = "a/2"
        _ = try await transfer.run()
        transfer.session = "s-2"
        _ = try await transfer.run()
        transfer.remotePath = "3"
        _ = try await transfer.run()
        #expect(
            requests(transfer) == [
                "MKCOL /files/a/", "PUT /files/a/1", "PUT /files/a/2", "MKCOL /files/a/", "PUT /files/a/2", "PUT /files/3",
            ])
        await transfer.end()
    }

    @Test func createsEachFolderOnceForConcurrentFiles() async throws {
        let server = FolderServer()
        let transfer = try transfer("") { request, _ in server.answer(request) }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                var copy = transfer
                copy.remotePath = "all/day/\(number % 4)/\(number)"
                group.addTask { [copy] in _ = try await copy.run() }
            }
            try await group.waitForAll()
        }
        let created = requests(transfer).filter { $0.hasPrefix("MKCOL") }
        // Each innermost folder takes two requests: the first request finds that the folder's parent is missing.
        let inner = (0..<4).flatMap { ["MKCOL /files/all/day/\($0)/", "MKCOL /files/all/day/\($0)/"] }
        #expect(created.sorted() == (["MKCOL /files/all/", "MKCOL /files/all/day/", "MKCOL /files/all/day/"] + inner).sorted())
        #expect(requests(transfer).count { $0.hasPrefix("PUT") } == 40)
        await transfer.end()
    }

    @Test func encodesNames() async throws {
        let server = FolderServer(["/files/"])
        let transfer = try transfer("50% ?/é#/a b") { request, _ in server.answer(request) }
        _ = try await transfer.run()
        #expect(
            requests(transfer) == [
                "MKCOL /files/50%25%20%3F/%C3%A9%23/", "MKCOL /files/50%25%20%3F/", "MKCOL /files/50%25%20%3F/%C3%A9%23/",
                "PUT /files/50%25%20%3F/%C3%A9%23/a%20b",
            ])
        await transfer.end()
    }

    /// The transport creates only folders below the fixed part of the address, `/in/`. The requests keep the query, because it may authorize them.
    @Test func createsFoldersOfAddressesWithPlaceholders() async throws {
        let server = FolderServer(["/in/"])
        let transfer = try transfer("a/b.bin", to: "/in/{transfer}/{name}?key=1") { request, _ in server.answer(request) }
        _ = try await transfer.run()
        #expect(requests(transfer) == ["MKCOL /in/t-1/?key=1", "PUT /in/t-1/b.bin?key=1"])
        await transfer.end()
    }

    /// Another client removes the folder during the session. nginx responds with 500 if the folder is missing.
    @Test(arguments: [409, 404, 500]) func createsRemovedFolderAgain(missing: Int) async throws {
        let server = FolderServer(missing: missing)
        var transfer = try transfer("a/1") { request, _ in server.answer(request) }
        _ = try await transfer.run()
        server.reset()
        transfer.remotePath = "a/2"
        _ = try await transfer.run()
        #expect(requests(transfer) == ["MKCOL /files/a/", "PUT /files/a/1", "PUT /files/a/2", "MKCOL /files/a/", "PUT /files/a/2"])
        await transfer.end()
    }

    /// The folder was removed. Another upload creates the folder again before the second `MKCOL`.
    @Test(arguments: [409, 404]) func uploadsToFolderOfOtherUpload(missing: Int) async throws {
        let statuses = [201, missing, 405, 201]
        let transfer = try transfer("a/1") { _, number in [number < statuses.count ? .answer(statuses[number]) : .silence] }
        _ = try await transfer.run()
        #expect(requests(transfer) == ["MKCOL /files/a/", "PUT /files/a/1", "MKCOL /files/a/", "PUT /files/a/1"])
        await transfer.end()
    }

    /// The server may respond differently for the next file.
    @Test func retriesFolderAfterServerError() async throws {
        let transfer = try transfer("a/1") { request, _ in [.answer(request.method == "PUT" ? 201 : 500)] }
        for _ in 0..<2 { _ = try await transfer.run() }
        #expect(requests(transfer) == ["MKCOL /files/a/", "PUT /files/a/1", "MKCOL /files/a/", "PUT /files/a/1"])
        await transfer.end()
    }

    /// The server does not allow the request, but the folder exists.
    @Test(arguments: [403, 501, 400]) func uploadsAlthoughFolderIsNotCreated(status: Int) async throws {
        let transfer = try transfer("a/1") { request, _ in [.answer(request.method == "PUT" ? 201 : status)] }
        _ = try await transfer.run()
        await transfer.end()
    }

    @Test(arguments: [
        (403, FailureClass.permanent, "does not allow creating the folder"), (501, .unsupported, "webDAV"),
        (409, .permanent, "no folder at the account's address"), (415, .permanent, "did not create the folder"),
    ])
    func reportsWhyFolderIsMissing(status: Int, failureClass: FailureClass, text: String) async throws {
        let transfer = try transfer("a/b/1") { request, _ in [.answer(request.method == "PUT" ? 409 : status)] }
        let error = await transfer.failure()
        #expect(error?.failureClass == failureClass && error?.message.contains(text) == true, "\(String(describing: error))")
        await transfer.end()
    }

    @Test(arguments: [(401, FailureClass.credentials), (507, .remoteFull), (503, .transient), (429, .transient)])
    func failsBeforeUpload(status: Int, failureClass: FailureClass) async throws {
        let transfer = try transfer("a/1") { _, _ in [.answer(status)] }
        #expect(await transfer.failure()?.failureClass == failureClass)
        #expect(requests(transfer) == ["MKCOL /files/a/"])
        await transfer.end()
    }

    @Test func createsNoFoldersForFormsAndSignedURLs() async throws {
        let form = try transfer("a/1", mode: "form") { _, _ in [.answer(200)] }
        _ = try await form.run()
        #expect(form.server.requests.map(\.method) == ["POST"])
        await form.end()
        var signed = try transfer("a/1") { _, _ in [.answer(200)] }
        signed.options.uploadURL = signed.server.url("/files/b/c?signature=1")
        _ = try await signed.run()
        #expect(signed.server.requests.map(\.method) == ["PUT"])
        await signed.end()
        let plain = try TestTransfer("put", size: 1) { _, _ in [.answer(200)] }
        _ = try await plain.run()
        #expect(plain.server.requests.map(\.method) == ["PUT"])
        await plain.end()
    }
}
