// Apps name these options of connections, so `import TransportSFTP` is enough.
@_exported public import HTTPSupport
