import CurlEngine
import Testing
import TransferCore

@Suite struct ConnectionKeyTests {
    private func key(password: String?, passphrase: String?) -> ConnectionKey {
        var options = ConnectionOptions()
        options.proxy = .url("http://127.0.0.1:8080", userName: "anna", password: password.map { Secret($0) })
        options.clientCertificate = ClientCertificate(certificateFile: "/client.pem", passphrase: passphrase.map { Secret($0) })
        return ConnectionKey(options)
    }

    /// An idle connection pool keeps its key in memory, so the key must contain no secrets.
    @Test func keysContainNoSecrets() {
        var text = ""
        dump(key(password: "secret of the proxy", passphrase: "secret of the key"), to: &text)
        #expect(text.contains("/client.pem"), "The text shows the properties of the key.")
        #expect(!text.contains("secret of"))
    }

    @Test func keysDistinguishSecrets() {
        let secrets: [(password: String?, passphrase: String?)] = [
            (nil, nil), ("", nil), (nil, ""), ("a", "bc"), ("ab", "c"), ("c", "ab"), ("abc", nil),
        ]
        #expect(Set(secrets.map { key(password: $0.password, passphrase: $0.passphrase) }).count == secrets.count)
        #expect(key(password: "a", passphrase: "bc") == key(password: "a", passphrase: "bc"))
    }
}
