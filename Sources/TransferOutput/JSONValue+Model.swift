import Foundation
import SystemPackage
package import TransferCore
package import TransferKit

extension JSONValue {
    /// A session in the output of `list` and `show`.
    package init(_ session: SessionStatus) {
        let identity: JSONValue = [
            "id": .string(session.id.description),
            "index": JSONValue(session.state == .draft ? nil : session.index),
            "state": .string(session.state.rawValue),
            "phase": JSONValue(session.phase?.rawValue),
            "why": JSONValue(session.why?.description),
            "name": .string(session.name),
            "direction": .string(session.direction.rawValue),
            "account": .string(session.account),
            "endpoint": JSONValue(session.endpoint),
            "transport": JSONValue(session.transport?.rawValue),
            "member": JSONValue(session.host),
        ]
        let details: JSONValue = [
            "notBefore": JSONValue(session.notBefore),
            "after": JSONValue(session.dependency?.session.description),
            "rateLimit": JSONValue(session.rateLimit),
            "deadline": JSONValue(session.deadline.map { $0 / .seconds(1) }),
            "attempts": JSONValue(session.attempts),
            "error": JSONValue(session.error, file: session.failedItem?.string),
            "tags": .array(session.tags.map(JSONValue.string)),
            "context": session.context.map(JSONValue.embedded) ?? .null,
            "createdAt": JSONValue(session.createdAt),
            "startedAt": JSONValue(session.startedAt),
            "endedAt": JSONValue(session.endedAt),
        ]
        let times: JSONValue = session.times.map { ["times": JSONValue($0)] } ?? [:]
        self = .joined(identity, JSONValue(session.statistics), details, times)
    }

    private init(_ times: TransferTimes) {
        self = [
            "connecting": JSONValue(times.secondsConnecting),
            "transferring": JSONValue(times.secondsTransferring),
            "awaitingResponse": JSONValue(times.secondsAwaitingResponse),
            "storing": JSONValue(times.secondsStoring),
            "rateLimited": JSONValue(times.secondsRateLimited),
        ]
    }

    /// An item in the output of `show`.
    package init(_ item: ItemStatus) {
        var members: [(name: String, value: JSONValue)] = [("source", .string(item.source.string))]
        let bytes = item.source.bytes
        if String(validating: bytes, as: UTF8.self) == nil {
            members.append(("sourceBytes", .string(Data(bytes).base64EncodedString())))
        }
        members += [
            ("destination", .string(item.destination.description))
        ]
        if String(validating: item.destination.bytes, as: UTF8.self) == nil {
            members.append(("destinationBytes", .string(Data(item.destination.bytes).base64EncodedString())))
        }
        members += [
            ("remoteURL", JSONValue(item.remoteURL)),
            ("state", .string(item.state.rawValue)),
            ("bytesTotal", JSONValue(item.bytesTotal)),
            ("bytesDone", JSONValue(item.bytesDone)),
            ("bytesSent", JSONValue(item.bytesSent)),
            ("checksum", JSONValue(item.checksum)),
            ("partialExpiresAt", JSONValue(item.partialExpiresAt)),
            ("answer", JSONValue(item.serverResponse)),
            ("warnings", .array(item.warnings.map(JSONValue.string))),
            ("error", JSONValue(item.error, file: item.source.string)),
            ("formFiles", .array(item.formFiles.map(JSONValue.init))),
        ]
        self = .object(members)
    }

    private init(_ file: FormFileStatus) {
        self = [
            "field": .string(file.field),
            "name": .string(file.name),
            "source": JSONValue(file.source?.string),
            "mediaType": JSONValue(file.mediaType),
            "bytesTotal": JSONValue(file.bytesTotal),
        ]
    }

    private init(_ response: ServerResponse?) {
        guard let response else {
            self = .null
            return
        }
        self = [
            "status": .integer(Int64(response.status)), "mediaType": JSONValue(response.mediaType), "text": .string(response.text),
            "isTruncated": .bool(response.isTruncated),
        ]
    }

    /// An error, or null.
    package init(_ error: TransferError?, file: String?) {
        guard let error else {
            self = .null
            return
        }
        self = [
            "class": .string(error.failureClass.rawValue),
            "code": .string(error.code.rawValue),
            "message": .string(error.description),
            "file": JSONValue(file),
        ]
    }

    /// An account with the sources of its credentials, but not the secrets.
    package init(_ status: AccountStatus) {
        self = [
            "name": .string(status.account.name),
            "endpoints": .array(status.account.endpoints.map(JSONValue.init)),
            "blocked": JSONValue(status.blockingError, file: nil),
            "sessions": JSONValue(status.sessions),
            "maxSessions": JSONValue(status.account.maxConcurrentSessions),
            "rateLimit": JSONValue(status.account.rateLimit),
            "timetable": JSONValue(status.account.timetable?.text),
            "currentRateLimit": JSONValue(status.currentRateLimit),
            "unavailable": .array(
                status.unavailableEndpoints.map {
                    ["address": .string($0.location), "nextAttempt": JSONValue($0.nextAttempt), "error": JSONValue($0.error, file: nil)]
                }),
        ]
    }

    private init(_ endpoint: Endpoint) {
        self = [
            "transport": .string(endpoint.transport.rawValue),
            "address": .string(endpoint.displayAddress),
            "credentials": .array(endpoint.credentials.map(JSONValue.init)),
            "settings": .object(endpoint.displaySettings.map { ($0.name, .string($0.value)) }),
        ]
    }

    private init(_ reference: CredentialReference) {
        var (environment, file, app): (String?, String?, String?) = (nil, nil, nil)
        var isInMemory = false
        switch reference.source {
        case .environment(let name): environment = name
        case .file(let path): file = path
        case .app(let name): app = name
        case .memory: isInMemory = true
        }
        self = [
            "kind": .string(reference.kind.rawValue),
            "name": JSONValue(reference.name),
            "environment": JSONValue(environment),
            "file": JSONValue(file),
            "app": JSONValue(app),
            "memory": .bool(isInMemory),
        ]
    }
}
