// An app that uses the queue names values of the contract, such as endpoints and errors, so one import gives both.
@_exported public import TransferCore
