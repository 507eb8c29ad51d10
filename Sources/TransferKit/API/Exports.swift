// Apps that use the queue also need types of TransferCore, such as endpoints and errors. With this re-export, they import only one module.
@_exported public import TransferCore
