import Foundation

/// A library that replaces the functions with which a server checks passwords (ld.so(8), LD_PRELOAD). Tests need this library because they
/// know no user's password. It makes ``password`` the password of every user, both in the shadow file and for PAM.
package enum PasswordLibrary {
    package static let password = "the right password"

    /// Blocks.
    static func make(in folder: URL) throws -> URL {
        let source = folder.appending(path: "passwords.c")
        let library = folder.appending(path: "passwords.so")
        try Data(program.utf8).write(to: source)
        try SSHServerProcess.run("/usr/bin/env", ["cc", "-shared", "-fPIC", "-o", library.path, source.path])
        return library
    }

    // `openssl passwd -6` created the hash. The PAM functions first prompt for the password with hidden input. They then prompt with
    // visible input, and require an empty response.
    private static let program = #"""
        #include <shadow.h>
        #include <stdlib.h>
        #include <string.h>

        struct spwd *getspnam(const char *name) {
            static struct spwd entry;
            static char user[64];
            strncpy(user, name, sizeof user - 1);
            entry.sp_namp = user;
            entry.sp_pwdp = "$6$transferkit$SuGSuHRV3zju0Eb035XMdbVlo5nwlkApVSl35.96z9.72dP9CCg3t09NeUpLHJXS7IFKkzFeIR1AY5kLtJs7J/";
            entry.sp_lstchg = entry.sp_min = entry.sp_max = entry.sp_warn = entry.sp_inact = entry.sp_expire = -1;
            return &entry;
        }

        struct pam_message { int style; const char *text; };
        struct pam_response { char *text; int code; };
        struct pam_conv {
            int (*ask)(int count, const struct pam_message **messages, struct pam_response **answers, void *context);
            void *context;
        };
        enum { success = 0, failure = 7, user_item = 2, conversation_item = 5, hidden = 1, shown = 2 };
        static const void *items[16];
        static struct pam_conv conversation;
        static char user[64];

        int pam_set_item(void *handle, int item, const void *value) {
            if (item == conversation_item) conversation = *(const struct pam_conv *)value;
            if (item == user_item) strncpy(user, value, sizeof user - 1);
            return success;
        }
        int pam_get_item(const void *handle, int item, const void **value) {
            *value = item == user_item ? (const void *)user : item == conversation_item ? (const void *)&conversation : 0;
            return success;
        }
        int pam_start(const char *service, const char *name, const struct pam_conv *initial, void **handle) {
            pam_set_item(0, user_item, name);
            pam_set_item(0, conversation_item, initial);
            *handle = items;
            return success;
        }
        static int is_right(int style, const char *question, const char *answer) {
            struct pam_message message = { style, question };
            const struct pam_message *messages[] = { &message };
            struct pam_response *answers = 0;
            if (conversation.ask(1, messages, &answers, conversation.context) != success || !answers || !answers->text) return 0;
            return strcmp(answers->text, answer) == 0;
        }
        int pam_authenticate(void *handle, int flags) {
            return is_right(hidden, "Password: ", "the right password") && is_right(shown, "Station: ", "") ? success : failure;
        }
        int pam_acct_mgmt(void *handle, int flags) { return success; }
        int pam_setcred(void *handle, int flags) { return success; }
        int pam_chauthtok(void *handle, int flags) { return success; }
        int pam_open_session(void *handle, int flags) { return success; }
        int pam_close_session(void *handle, int flags) { return success; }
        int pam_end(void *handle, int status) { return success; }
        int pam_putenv(void *handle, const char *value) { return success; }
        const char *pam_getenv(void *handle, const char *name) { return 0; }
        char **pam_getenvlist(void *handle) { return calloc(1, sizeof(char *)); }
        const char *pam_strerror(void *handle, int code) { return "refused"; }
        """#
}
