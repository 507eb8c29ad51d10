import Logging
import TransferKit

/// The member's shares of the rate limits. The member's queue limits the total rate of its sessions to these shares.
extension FleetMember {
    /// Applies new shares to the queue. If an earlier call is still running, only stores the shares, which the earlier call then applies. After an
    /// error, the next heartbeat calls this method again.
    func apply(_ shares: RateShares) async {
        rates.fleet = shares.fleet
        rates.accounts.merge(shares.accounts) { $1 }
        guard !isApplyingRates else { return }
        isApplyingRates = true
        defer { isApplyingRates = false }
        do {
            while let (account, share) = unappliedRate {
                try await queue.setRateLimit(share, account: account)
                if let account { accounts[account]?.rateLimit = share } else { appliedRate = .some(share) }
            }
        } catch {
            logger.warning("Cannot change a rate limit. \(error)")
        }
    }

    /// A share that the queue does not have yet; nil if the queue has all shares. Omits accounts that the queue does not know, because a new
    /// account is saved with this member's share (``divided(_:)``).
    private var unappliedRate: (account: String?, share: Int64?)? {
        if appliedRate != .some(rates.fleet) { return (nil, rates.fleet) }
        for (account, share) in rates.accounts {
            if let known = accounts[account], known.rateLimit != share { return (account, share) }
        }
        return nil
    }

    /// A copy of an account for this member's queue: without a timetable, and with this member's share as the rate limit.
    func divided(_ account: Account) -> Account {
        var account = account
        account.timetable = nil
        if let share = rates.accounts[account.name] { account.rateLimit = share }
        return account
    }
}
