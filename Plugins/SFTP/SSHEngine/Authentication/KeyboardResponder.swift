import CSSH2
import TransferCore

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Responds to the server's prompts (RFC 4256). The first three prompts for hidden input get the password, and all others an empty string.
final class KeyboardResponder {
    private let password: Secret
    private var remainingPasswords = 3

    init(_ password: Secret) {
        self.password = password
    }

    func respond(
        _ count: CInt, _ prompts: UnsafePointer<LIBSSH2_USERAUTH_KBDINT_PROMPT>?,
        _ responses: UnsafeMutablePointer<LIBSSH2_USERAUTH_KBDINT_RESPONSE>?
    ) {
        guard let prompts = unsafe prompts, let responses = unsafe responses else { return }
        for index in 0..<Int(max(0, count)) {
            let isHidden = unsafe prompts[index].echo == 0
            let response = isHidden && remainingPasswords > 0 ? password.reveal() : ""
            if isHidden { remainingPasswords -= 1 }
            // libssh2 frees the copy.
            guard let text = unsafe strdup(response) else { continue }
            unsafe responses[index].text = text
            unsafe responses[index].length = unsafe UInt32(strlen(text))
        }
    }
}
