extension Duration {
    /// The longest duration with whole seconds. The sum of this duration and one second overflows.
    static let largest = Duration.seconds(Int64.max) * 18 + Duration.seconds(4_120_486_797_083_267_205)
}
