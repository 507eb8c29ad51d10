// Apps name these options of requests, so `import TransportHTTP` is enough.
@_exported public import HTTPSupport
