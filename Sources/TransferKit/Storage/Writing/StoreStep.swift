/// A step in the store's work, reported to tests that end the process at this step.
package enum StoreStep: Sendable, Equatable {
    /// The statement, which can be `COMMIT`, will be executed.
    case before(String)
    /// The statement was executed.
    case after(String)
}
