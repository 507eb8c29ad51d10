extension RateLimits {
    /// The maximum number of rounds in one division. In practice, even nested limits need fewer rounds. Undistributed bytes wait for the next
    /// division.
    private static let rounds = 8
    private static let negligible = 1e-9

    /// Divides each bucket's pool equally among the paced sessions (``PacedSession``) that draw from it, up to the number of bytes that each
    /// session wants.
    ///
    /// A session takes each byte from all of its buckets. In each round, each bucket offers equal shares of its remaining bytes to the sessions
    /// that still take part. Each session takes the smallest of its offers. A session drops out when it has enough, or when one of its buckets
    /// is empty. Its unused share goes to the other sessions in the next round (max-min fairness). The result is in the sessions' `granted` and
    /// the buckets' `pool`.
    ///
    /// - Parameters:
    ///   - wants: Returns the number of bytes that a session wants.
    ///   - pools: Returns the number of bytes of a bucket to divide.
    mutating func divide(wants: (PacedSession) -> Double, pools: (RateBucket) -> Double) {
        for paced in pacedSessions.indices {
            pacedSessions[paced].want = wants(pacedSessions[paced])
            pacedSessions[paced].granted = 0
            for bucket in pacedSessions[paced].bucketIndices { buckets[bucket].pool = pools(buckets[bucket]) }
        }
        for _ in 0..<Self.rounds {
            guard offer() else { return }
            for paced in pacedSessions.indices where pacedSessions[paced].isTaking {
                let share = pacedSessions[paced].bucketIndices.reduce(pacedSessions[paced].want) { min($0, buckets[$1].level) }
                pacedSessions[paced].want -= share
                pacedSessions[paced].granted += share
                for bucket in pacedSessions[paced].bucketIndices { buckets[bucket].pool = max(0, buckets[bucket].pool - share) }
            }
        }
    }

    /// Determines which sessions take part in the next round, and what each bucket offers. Returns false if no session takes part.
    private mutating func offer() -> Bool {
        var isAnyTaking = false
        for paced in pacedSessions.indices {
            for bucket in pacedSessions[paced].bucketIndices { buckets[bucket].takers = 0 }
        }
        for paced in pacedSessions.indices {
            pacedSessions[paced].isTaking =
                pacedSessions[paced].want > Self.negligible
                && pacedSessions[paced].bucketIndices.allSatisfy { buckets[$0].pool > Self.negligible }
            guard pacedSessions[paced].isTaking else { continue }
            isAnyTaking = true
            for bucket in pacedSessions[paced].bucketIndices { buckets[bucket].takers += 1 }
        }
        for paced in pacedSessions.indices where pacedSessions[paced].isTaking {
            for bucket in pacedSessions[paced].bucketIndices {
                buckets[bucket].level = buckets[bucket].pool / Double(buckets[bucket].takers)
            }
        }
        return isAnyTaking
    }
}
