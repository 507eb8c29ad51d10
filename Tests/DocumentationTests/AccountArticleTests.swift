import Foundation
import Testing
import TransferCore
import TransportSFTP
import TransportTUS

/// The commands and ranges in the articles on accounts for tus and SFTP are valid.
@Suite struct AccountArticleTests {
    /// Returns the settings of each block of commands in an article.
    private func settings(in article: String) throws -> [[String: String]] {
        let text = try String(contentsOf: Catalog.file(of: article), encoding: .utf8)
        return try text.components(separatedBy: "```sh\n").dropFirst().map { block in
            let words = block.components(separatedBy: "```")[0].components(separatedBy: "--setting ").dropFirst()
            let pairs = try words.map { word in
                let setting = word.hasPrefix("'") ? word.dropFirst().prefix { $0 != "'" } : word.prefix { !$0.isWhitespace }
                let parts = setting.split(separator: "=", maxSplits: 1).map(String.init)
                try #require(parts.count == 2)
                return (parts[0], parts[1])
            }
            return Dictionary(uniqueKeysWithValues: pairs)
        }
    }

    @Test func commandsForTUSAreValid() throws {
        let blocks = try settings(in: "TUSAccounts")
        #expect(blocks.count == 2)
        for settings in blocks {
            #expect(!settings.isEmpty)
            try TUSTransport.validate(Endpoint(transport: .tus, address: "https://host/", settings: settings))
        }
    }

    @Test func commandsForSFTPAreValid() throws {
        let blocks = try settings(in: "SFTPAccounts")
        #expect(blocks.contains { $0["proxyCommand"] != nil })
        for settings in blocks {
            try SFTPTransport.validate(Endpoint(transport: .sftp, address: "sftp://host/", settings: settings))
        }
    }

    /// The texts in the table of errors are parts of the transport's messages.
    @Test func errorsOfSFTPExist() throws {
        let folder = Catalog.package.appending(path: "Plugins/SFTP")
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder.path).filter { $0.hasSuffix(".swift") }
        let sources = try files.map { try String(contentsOf: folder.appending(path: $0), encoding: .utf8) }
        let rows = try Catalog.table(below: "Common errors", in: Catalog.file(of: "SFTPAccounts"))
        #expect(rows.count > 20)
        for row in rows {
            let texts = row.split(separator: "|")[0].components(separatedBy: "`").enumerated().filter { !$0.offset.isMultiple(of: 2) }
            #expect(!texts.isEmpty)
            for (_, text) in texts { #expect(sources.contains { $0.contains(text) }, "\(text)") }
        }
    }

    /// Checks the minimum values that the article `TUSAccounts` states.
    @Test func minimumValuesAreCorrect() throws {
        for (name, minimum) in [("chunkMultiple", 1), ("chunkSize", 1), ("parallelThreshold", 1), ("singleRequestSize", 0)] {
            try TUSTransport.validate(Endpoint(transport: .tus, address: "https://host/", settings: [name: "\(minimum)"]))
            #expect(throws: TransferError.self) {
                try TUSTransport.validate(Endpoint(transport: .tus, address: "https://host/", settings: [name: "\(minimum - 1)"]))
            }
        }
    }
}
