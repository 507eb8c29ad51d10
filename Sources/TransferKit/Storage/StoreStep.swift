/// A moment in the store's work, told to tests that end the process there.
package enum StoreStep: Sendable, Equatable {
    /// The statement, `COMMIT` among them, is about to be executed.
    case before(String)
    /// The statement was executed.
    case after(String)
}
