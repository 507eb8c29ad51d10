import SystemPackage
import TransferKit

extension RemoteTransferQueue {
    /// Sends a request, and returns the value in the response.
    ///
    /// - Parameter parts: The parts of the request's content, which this method sends before the request.
    /// - Throws: ``QueueError`` with a code of the owner, or `ownerUnreachable`, `ownerLost`, `ownerSilent`, `invalidMessage` or
    ///   `unknownProtocolVersion`. `CancellationError` if the task is cancelled. The other methods of this file throw the same errors.
    func call<Value: Codable & Sendable>(_ request: ControlRequest, after parts: [StagedPart] = []) async throws -> Value {
        try await withConnection(for: request, after: parts) { connection in
            let response = try await connection.read(ControlResponse<Value>.self)
            if let error = response.error { throw error }
            guard let value = response.value else {
                throw QueueError(.invalidMessage, "The other process sent a response without a value.")
            }
            return value
        }
    }

    func perform(_ request: ControlRequest, after parts: [StagedPart] = []) async throws {
        let _: EmptyResult = try await call(request, after: parts)
    }

    /// Sends a request for a list, and joins the parts of the response.
    func list<Value: Codable & Sendable>(_ request: ControlRequest, after parts: [StagedPart] = []) async throws -> [Value] {
        try await list(request, after: parts) { (part: [Value]) in part }
    }

    func sessions(_ request: ControlRequest, after parts: [StagedPart] = []) async throws -> [SessionStatus] {
        try await list(request, after: parts) { (part: SessionRows) in try part.sessions }
    }

    private func list<Part: Codable & Sendable, Value: Sendable>(
        _ request: ControlRequest, after parts: [StagedPart], _ values: @Sendable (Part) throws -> [Value]
    ) async throws -> [Value] {
        try await withConnection(for: request, after: parts) { connection in
            var found: [Value] = []
            while true {
                let response = try await connection.read(ControlResponse<Part>.self)
                if let error = response.error { throw error }
                if let part = response.value { found += try values(part) }
                guard response.more == true else { return found }
            }
        }
    }

    private func withConnection<Result: Sendable>(
        for request: ControlRequest, after parts: [StagedPart], _ body: (ControlConnection) async throws -> Result
    ) async throws -> Result {
        let connection = try await begin(request, after: parts)
        return try await withTaskCancellationHandler {
            do {
                return try await body(connection)
            } catch {
                throw Task.isCancelled ? CancellationError() : error
            }
        } onCancel: {
            connection.interrupt()
        }
    }

    /// Connects, sends a request, and receives the owner's response to the greeting. The caller then reads the response to the request from
    /// the returned connection.
    ///
    /// The owner closes the connection without reading anything in three cases: it is exiting, it has too many clients, or this process was suspended
    /// for longer than the owner's timeout. This method then repeats the request, until the owner has exited or the timeout has passed.
    func begin(_ request: ControlRequest, after parts: [StagedPart] = []) async throws -> ControlConnection {
        let deadline = ContinuousClock.now + timeout
        while true {
            let connection = try await connected()
            do {
                try await withTaskCancellationHandler {
                    try await begin(request, after: parts, on: connection)
                } onCancel: {
                    connection.interrupt()
                }
                return connection
            } catch {
                guard !Task.isCancelled else { throw CancellationError() }
                guard (error as? QueueError)?.code == .ownerUnreachable, ContinuousClock.now < deadline else { throw error }
            }
            try await Task.sleep(for: Self.retryInterval)
        }
    }

    static let retryInterval = Duration.milliseconds(20)

    private func connected() async throws -> ControlConnection {
        let socket = Result { () throws(Errno) in try ControlSocket.make() }.mapError { QueueError.unreachable(folder, "\($0)") }
        let connection = ControlConnection(try socket.get(), timeout: timeout)
        do {
            try await connection.connect(to: UnixSocketAddress(folder: folder))
        } catch {
            try Task.checkCancellation()
            throw error
        }
        return connection
    }

    private func begin(_ request: ControlRequest, after parts: [StagedPart], on connection: ControlConnection) async throws {
        do {
            try await send(request, after: parts, on: connection)
        } catch {
            // An owner that rejects the request sends the reason before it closes the connection.
            guard error.code == .ownerLost else { throw error }
        }
        let greeting = try await greeting(on: connection)
        guard greeting.version != nil else {
            throw QueueError(
                .unknownProtocolVersion,
                "Process \(greeting.owner.processID), which owns the queue, uses an incompatible version of this software. Use the same version, or stop that process."
            )
        }
    }

    private func greeting(on connection: ControlConnection) async throws -> GreetingResponse {
        do {
            return try await connection.read(GreetingResponse.self)
        } catch {
            guard error.code == .ownerLost else { throw error }
            // An owner that sends no greeting has not read the request.
            throw QueueError.unreachable(folder, "the process that owns it is exiting or has too many clients")
        }
    }

    private func send(
        _ request: ControlRequest, after parts: [StagedPart], on connection: ControlConnection
    ) async throws(QueueError) {
        try await connection.write(Greeting())
        for part in parts { try await write(.stage(part), on: connection) }
        try await write(request, on: connection)
    }

    private func write(_ request: ControlRequest, on connection: ControlConnection) async throws(QueueError) {
        do {
            try await connection.write(request)
        } catch {
            guard error.code == .invalidMessage else { throw error }
            // The caller's request is too large; the other process is not at fault.
            throw QueueError(.invalidRequest, error.message)
        }
    }
}
