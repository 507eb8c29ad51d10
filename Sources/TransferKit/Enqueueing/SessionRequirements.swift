package import TransferCore

extension Sequence<Endpoint> {
    /// Checks whether the endpoints of an account can perform a session.
    ///
    /// A failure of the class ``FailureClass/unsupported`` rejects the session only if every endpoint fails with it, because an attempt skips
    /// endpoints that lack a feature. Any other failure, such as a header that no request may have, rejects the session even if only a fallback
    /// reports it. Otherwise, success would depend on which server is reachable.
    ///
    /// - Parameter validate: Throws if the endpoint's transport finds that the session is invalid at the endpoint.
    /// - Throws: The first failure of another class, or else the first `unsupported` failure if no endpoint can perform the session.
    package func check(by validate: (Endpoint) throws(TransferError) -> Void) throws(TransferError) {
        var isAble = false
        var inability: TransferError?
        for endpoint in self {
            do throws(TransferError) {
                try validate(endpoint)
                isAble = true
            } catch {
                guard error.failureClass == .unsupported else { throw error }
                inability = inability ?? error
            }
        }
        if !isAble, let inability { throw inability }
    }
}
