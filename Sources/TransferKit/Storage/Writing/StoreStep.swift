/// A step of a change to the store. Tests observe the steps, for example to kill the process at one of them.
package enum StoreStep: Sendable, Equatable {
    /// The statement, which can be `COMMIT`, is about to be executed.
    case before(String)
    /// The statement has been executed.
    case after(String)
}
