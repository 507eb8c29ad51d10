// Apps use the network options of this module, so `import TransportSFTP` must be enough.
@_exported public import HTTPSupport
