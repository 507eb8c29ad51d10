// Apps that use the queue also need types of TransferCore, such as endpoints and errors. This way, they import only one module.
@_exported public import TransferCore
