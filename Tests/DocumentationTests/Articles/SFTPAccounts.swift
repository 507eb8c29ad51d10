// swift-format-ignore-file

import SystemPackage
import TransferCore
import TransferKit
import TransportSFTP

// The code of the article "Accounts for SFTP", in the same order. ``ArticleTests`` verifies that both copies match.

private func save(queue: TransferQueue) async throws {
    // ARTICLE
    let endpoint = Endpoint.sftp(
        "sftp://me@files.example.com/in/", credentials: .keyPassphrase(.environment("KEY_PASSPHRASE")),
        options: SFTPOptions(identities: ["/home/me/.ssh/id_ed25519"], maxConnections: 4, keepTimes: true))
    try await queue.save(Account("archive", endpoints: [endpoint]))
    // END

    // ARTICLE
    let pinned = SFTPOptions(hostKey: .pinned("SHA256:LE3k5sOTh46xnGmZiHTfPjCJL4NMpLPKTdBnMPHGN0s"))
    // END

    // ARTICLE
    let byPassword = Endpoint.sftp("sftp://me@files.example.com/in/", credentials: .password(.file("/etc/studio/sftp-password")))
    let byAgent = Endpoint.sftp(
        "sftp://me@files.example.com/in/", options: SFTPOptions(agent: .socket("/run/user/1000/ssh-agent.socket")))
    // END

    // ARTICLE
    let inside = Endpoint.sftp(
        "sftp://me@files.internal/in/", options: SFTPOptions(proxyCommand: "ssh -o BatchMode=yes -W %h:%p me@jump.example.com"))
    // END

    // ARTICLE
    let network = NetworkOptions(proxy: .url("socks5h://proxy.example.com:1080"))
    let throughProxy = Endpoint.sftp("sftp://me@files.example.com/in/", options: SFTPOptions(network: network))
    // END
    for endpoint in [endpoint, byPassword, byAgent, inside, throughProxy] { try SFTPTransport.validate(endpoint) }
    _ = pinned
}
