import ArgumentParser
import Foundation
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

/// Adds the sessions that the arguments of `upload`, `download` or `add` describe.
struct SessionSubmission {
    let common: CommonOptions
    let options: NewSessionOptions
    let transfer: TransferOptions
    let direction: TransferDirection
    var upload: UploadOptions?
    var uploadItems: UploadItemOptions?
    var download: DownloadOptions?
    let account: String
    let paths: [PathArgument]
    let hasStdinFlag: Bool
    /// The destination folder; nil for the default.
    let destination: String?

    private var form: [FormArgument] { uploadItems?.form ?? [] }

    func validate() throws {
        if !form.isEmpty {
            guard paths.isEmpty, !hasStdinFlag else {
                throw ValidationError("--form and paths can't be used together. Add each file as --form NAME=@FILE.")
            }
            guard direction == .upload, !options.each, uploadItems?.copy != true else {
                throw ValidationError("--form can't be used with --download, --each or --copy.")
            }
            guard form.contains(where: { $0.path != nil }) else {
                throw ValidationError("A form needs at least one file. Add it as --form NAME=@FILE.")
            }
        } else if paths.isEmpty, !hasStdinFlag {
            throw ValidationError("No paths are given. Name files or folders, or use - or --stdin.")
        }
        if transfer.readsStandardInput, hasStdinFlag || paths.contains(where: { $0.path == GivenPaths.standardInput }) {
            throw ValidationError("Standard input can be read only once. Pass the settings in a file, or use --setting.")
        }
        if direction == .upload {
            _ = try RemoteNaming(to: destination.map(ProcessArguments.bytes))
        } else if let option = uploadItems?.firstGiven ?? upload?.firstGiven {
            throw ValidationError("\(option) is for uploads. Omit it with --download.")
        }
    }

    /// Adds the sessions, and prints their IDs. Reads paths and settings from standard input if the arguments request this.
    ///
    /// - Throws: An error if the endpoints or the queue reject a session. No session is then added.
    func add() async throws {
        let given = try await GivenPaths.read(paths + (hasStdinFlag ? [PathArgument(bytes: GivenPaths.standardInput.bytes)] : []))
        let items =
            direction == .download
            ? try remoteItems(given) : form.isEmpty ? try await localItems(given.map(\.path)) : [try await formItem()]
        let requests = try requests(
            for: options.each ? items.map { [$0] } : [items], try await transfer.options(upload, download))
        let hasParallelOption = transfer.parallel != nil
        let (clash, isSingleFile) = await BlockingIO.run {
            (
                RemoteNameClash(in: items),
                hasParallelOption && requests.allSatisfy { $0.items.count == 1 && $0.items.first?.source?.isFolder == false }
            )
        }
        var warnings: [String] = []
        var mode: QueueStatus.Mode?
        let ids = try await common.withQueue { queue in
            mode = try await queue.ownedMode
            warnings = try await checked(requests, given, clash, ofSingleFile: isSingleFile, in: queue)
            if direction == .download, destination != nil, CommandContext.current.queue == nil {
                await BlockingIO.run { [folder] in GivenPaths.createFolder(folder) }
            }
            var requests = requests
            try await options.placement.apply(to: &requests, in: queue)
            return try await options.placement.add(requests, to: queue, asDrafts: options.draft)
        }
        for warning in warnings { await common.note(warning) }
        if let date = options.placement.notBefore?.date { await common.note("The earliest start is \(Figures.date(date)).") }
        await CommandContext.current.output.write(ids, asJSON: common.json)
        if options.draft {
            await common.note("A draft does not run. To add it to the queue: transferq enqueue ID")
        } else {
            await common.note(aboutMode: mode)
        }
    }

    private func requests(for itemLists: [[TransferItem]], _ transferOptions: SessionOptions) throws -> [SessionRequest] {
        try itemLists.map { items in
            let name = options.name ?? Self.name(of: items)
            var request =
                direction == .download
                ? try SessionRequest.download(
                    items: items, from: account, to: folder, name: name, tags: options.tag, options: transferOptions)
                : try SessionRequest.upload(items: items, to: account, name: name, tags: options.tag, options: transferOptions)
            options.apply(to: &request)
            return request
        }
    }

    /// The session's name if the first path ends with `.` or `..`, such as "reels and 2 more"; nil for other paths, because the queue then chooses
    /// the name.
    private static func name(of items: [TransferItem]) -> String? {
        guard let first = items.first, let kind = first.source?.lastComponent?.kind, kind != .regular, let destination = first.destination
        else { return nil }
        let name = String(decoding: destination.lastComponent, as: UTF8.self)
        return items.count == 1 ? name : "\(name) and \(items.count - 1) more"
    }

    /// Checks the requests against the account's endpoints.
    ///
    /// - Returns: Warnings for the user.
    /// - Throws: A `CommandFailure` if the endpoints can't perform the sessions.
    private func checked(
        _ requests: [SessionRequest], _ given: [PathArgument], _ clash: RemoteNameClash?, ofSingleFile isSingleFile: Bool,
        in queue: any ControllableQueue
    ) async throws -> [String] {
        let endpoints = try await queue.existingAccount(account).account.endpoints
        guard let sessionOptions = requests.first?.options else { return [] }
        let check = AdmissionCheck(endpoints: endpoints, options: sessionOptions, transports: CommandContext.current.transports)
        // With `--dedupe`, the session may already exist. Errors in the new session then don't matter, so the queue, not this command, rejects
        // invalid options and remote names.
        let isCertainlyNew = options.dedupe == nil
        if isCertainlyNew { try check.check(for: direction) }
        if isCertainlyNew, !form.isEmpty { try check.checkForms() }
        guard direction == .upload else {
            if let folder = given.first(where: \.isFolder) { try check.check(folder: folder) }
            return []
        }
        let warning = try clash.flatMap { clash in isCertainlyNew ? try check.check(clash) : try? check.check(clash) }
        return try (transfer.overwrite.map { try check.check($0) } ?? []) + (warning.map { [$0] } ?? [])
            + check.warnings(chunk: transfer.chunk != nil, parallel: transfer.parallel != nil, ofSingleFile: isSingleFile)
    }

    // MARK: Items

    /// The local folder for downloads.
    private var folder: FilePath { FilePath(bytes: destination.map(ProcessArguments.bytes) ?? []).absolute }

    private func remoteItems(_ paths: [PathArgument]) throws -> [TransferItem] {
        try paths.map { $0.isEndpointFolder ? .remoteFolder(RemotePath.endpointFolder) : .remote(try RemotePath(bytes: $0.path.bytes)) }
    }

    private func formItem() async throws -> TransferItem {
        let (naming, first) = (try RemoteNaming(to: destination.map(ProcessArguments.bytes)), form.compactMap(\.path).first)
        let hasDestination = destination != nil
        let name = try await BlockingIO.run { () throws(TransferError) in
            try hasDestination ? first.flatMap { path throws(TransferError) in try naming.destination(of: path) } : nil
        }
        var item = TransferItem.form(form.map(\.part), as: name)
        item.symbolicLinks = uploadItems?.symlinks ?? .skip
        return item
    }

    private func localItems(_ paths: [FilePath]) async throws -> [TransferItem] {
        let naming = try RemoteNaming(to: destination.map(ProcessArguments.bytes))
        let (links, copies) = (uploadItems?.symlinks ?? .skip, uploadItems?.copy ?? false)
        return try await BlockingIO.run { () throws(TransferError) in
            try paths.map { path throws(TransferError) in
                // If the path's disk hangs, this process must not hold the storage folder.
                _ = path.isFolder
                // Relative paths in arguments refer to this process's working directory, even if the queue has a base folder.
                var item = TransferItem(path.absolute, as: try naming.destination(of: path), symbolicLinks: links)
                item.keepsCopy = copies
                return item
            }
        }
    }
}
