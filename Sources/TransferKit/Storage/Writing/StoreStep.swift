/// The start or the end of an SQL statement. Tests observe these steps, for example to kill the process at one of them.
package enum StoreStep: Sendable, Equatable {
    /// The statement, which can be `COMMIT`, is about to be executed.
    case before(String)
    /// The statement has been executed.
    case after(String)
}
