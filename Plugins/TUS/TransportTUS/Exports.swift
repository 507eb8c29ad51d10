// Apps name these options of requests, so `import TransportTUS` is enough.
@_exported public import HTTPSupport
