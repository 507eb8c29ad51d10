extension Duration {
    /// The longest duration in whole seconds. Adding another second overflows.
    static let largest = Duration.seconds(Int64.max) * 18 + Duration.seconds(4_120_486_797_083_267_205)
}
