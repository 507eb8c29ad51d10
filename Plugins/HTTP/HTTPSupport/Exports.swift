// Apps use the type of a header hook, so `import` of a transport must be enough.
@_exported public import CurlEngine
