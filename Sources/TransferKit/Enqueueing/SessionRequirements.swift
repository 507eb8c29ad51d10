package import TransferCore

extension Endpoint {
    /// Checks whether a form can be sent to the endpoint with a session's options.
    ///
    /// - Parameter transport: The endpoint's transport; nil if this process has none, in which case nothing is checked.
    /// - Throws: An error of the class ``FailureClass/unsupported`` if the transport can't send forms; otherwise the error of the transport.
    package func checkForms(_ options: AttemptOptions, with transport: (any Transport)?) throws(TransferError) {
        guard let transport else { return }
        guard let transport = transport as? any FormUploading else {
            throw TransferError(
                .unsupported, .unsupported,
                "The transport \"\(self.transport)\" can't send forms, so \(location) can't receive them. Use an account with an endpoint "
                    + "for forms, such as https+form://.")
        }
        try transport.validateForms(with: options, at: self)
    }
}

extension Sequence<Endpoint> {
    /// Checks whether the endpoints of an account can perform a session.
    ///
    /// A failure of the class ``FailureClass/unsupported`` rejects the session only if every endpoint fails in this way, because an attempt
    /// skips endpoints that lack a feature. Any other failure, such as a forbidden header, rejects the session even if only a fallback
    /// endpoint reports it. Otherwise, the success of the session would depend on which server is reachable.
    ///
    /// - Parameter validate: Throws if the endpoint's transport finds that the session is invalid at the endpoint.
    /// - Throws: The first failure whose class is not `unsupported`. If every endpoint fails with `unsupported`, the first of these failures.
    package func check(by validate: (Endpoint) throws(TransferError) -> Void) throws(TransferError) {
        var hasCapableEndpoint = false
        var unsupported: TransferError?
        for endpoint in self {
            do throws(TransferError) {
                try validate(endpoint)
                hasCapableEndpoint = true
            } catch {
                guard error.failureClass == .unsupported else { throw error }
                unsupported = unsupported ?? error
            }
        }
        if !hasCapableEndpoint, let unsupported { throw unsupported }
    }
}
