extension String {
    /// The text as one word of a shell command, in single quotes (POSIX.1-2017, Shell Command Language, section 2.2.2).
    package var shellWord: String { "'" + replacing("'", with: #"'\''"#) + "'" }
}
