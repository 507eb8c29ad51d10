extension RateLimits {
    /// The maximum number of rounds. In practice, even nested limits need fewer rounds. Undistributed bytes wait for the next division.
    private static let rounds = 8
    private static let negligible = 1e-9

    /// Divides each bucket's pool equally among the lanes (``SessionLane``) that draw from it, up to the number of bytes that each lane
    /// wants.
    ///
    /// A lane takes each byte from all of its buckets. In each round, each bucket offers equal shares of its remaining bytes to the lanes
    /// that still take part. Each lane takes the smallest of its offers. A lane drops out when it has enough, or when one of its buckets is
    /// empty. Its unused share goes to the other lanes in the next round (max-min fairness). The result is in the lanes' `given` and the
    /// buckets' `pool`.
    ///
    /// - Parameters:
    ///   - wants: Returns the number of bytes that a lane wants.
    ///   - pools: Returns the number of bytes of a bucket to divide.
    mutating func divide(wants: (SessionLane) -> Double, pools: (RateBucket) -> Double) {
        for lane in lanes.indices {
            lanes[lane].want = wants(lanes[lane])
            lanes[lane].given = 0
            for bucket in lanes[lane].path { buckets[bucket].pool = pools(buckets[bucket]) }
        }
        for _ in 0..<Self.rounds {
            guard offer() else { return }
            for lane in lanes.indices where lanes[lane].isTaking {
                let share = lanes[lane].path.reduce(lanes[lane].want) { min($0, buckets[$1].level) }
                lanes[lane].want -= share
                lanes[lane].given += share
                for bucket in lanes[lane].path { buckets[bucket].pool = max(0, buckets[bucket].pool - share) }
            }
        }
    }

    /// Determines which lanes take part in the next round, and what each bucket offers. Returns false if no lane takes part.
    private mutating func offer() -> Bool {
        var isAnyTaking = false
        for lane in lanes.indices {
            for bucket in lanes[lane].path { buckets[bucket].takers = 0 }
        }
        for lane in lanes.indices {
            lanes[lane].isTaking =
                lanes[lane].want > Self.negligible && lanes[lane].path.allSatisfy { buckets[$0].pool > Self.negligible }
            guard lanes[lane].isTaking else { continue }
            isAnyTaking = true
            for bucket in lanes[lane].path { buckets[bucket].takers += 1 }
        }
        for lane in lanes.indices where lanes[lane].isTaking {
            for bucket in lanes[lane].path { buckets[bucket].level = buckets[bucket].pool / Double(buckets[bucket].takers) }
        }
        return isAnyTaking
    }
}
