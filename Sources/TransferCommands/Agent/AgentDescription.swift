import Foundation
import SystemPackage
import TransferControl
import TransferCore
import TransferKit
import TransferOutput

struct AgentDescription {
    private let owner: QueueOwner
    private let mode: QueueStatus.Mode
    private let folder: FilePath

    init(_ owner: QueueOwner, _ mode: QueueStatus.Mode, folder: FilePath) {
        self.owner = owner
        self.mode = mode
        self.folder = folder
    }

    func write(asJSON isJSON: Bool) async {
        let output = CommandContext.current.output
        let log = folder.appending(RotatingLog.name)
        if isJSON {
            await output.write(
                [
                    "running": .bool(true), "process": .integer(Int64(owner.processID)), "since": JSONValue(owner.since),
                    "mode": .string(mode.rawValue),
                    "store": .string(folder.string), "log": .string(log.string),
                ] as JSONValue)
        } else {
            let text =
                "The agent (process \(owner.processID)) has been running since \(Figures.date(owner.since)). Its log is \(log)."
                + (mode.notice.map { " \($0)" } ?? "")
            await output.write(text.withoutControlCharacters + "\n")
        }
    }
}
