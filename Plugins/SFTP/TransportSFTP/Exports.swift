// `SFTPOptions` uses the network options of this module, so apps must get them with `import TransportSFTP`.
@_exported public import HTTPSupport
