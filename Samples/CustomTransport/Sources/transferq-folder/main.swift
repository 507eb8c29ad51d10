import FolderTransport
import TransferCommands

// `transferq` with the folder transport in addition to the built-in transports. Example:
//   transferq-folder account add archive folder://localhost/media/archive/
var transports = RegisteredTransports.builtIn
transports.all.append(RegisteredTransport(FolderTransport(), schemes: ["folder": "folder"], options: []))
await CommandLineProgram.main(transports: transports)
