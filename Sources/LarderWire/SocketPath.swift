// Where the library and its socket are when nobody says. No file is touched: callers resolve paths.

import LarderFormat

/// The directory of the library.
public enum LibraryPath {
    /// `$LARDER_LIBRARY`, else `$XDG_DATA_HOME/larder`, else `$HOME/.local/share/larder`; nil without any of them.
    /// An empty value counts as unset, and so does a relative one of XDG's.
    ///
    /// - Parameter environment: the value of a variable.
    public static func chosen(environment: (String) -> String?) -> String? {
        if let path = environment("LARDER_LIBRARY"), !path.isEmpty { return path }
        if let path = absolute(environment("XDG_DATA_HOME")) { return path + "/larder" }
        if let path = absolute(environment("HOME")) { return path + "/.local/share/larder" }
        return nil
    }

    static func absolute(_ path: String?) -> String? {
        guard let path, path.utf8.first == 0x2F else { return nil }
        return path
    }
}

/// The host's socket. Host, commands and clients use the same function.
public enum SocketPath {
    /// `$LARDER_SOCKET`, or nil where the library decides.
    public static func explicit(environment: (String) -> String?) -> String? {
        guard let path = environment("LARDER_SOCKET"), !path.isEmpty else { return nil }
        return path
    }

    /// `directory/<h>.sock`, h being the first 16 hex digits of the SHA-256 of the library's path.
    ///
    /// - Parameters:
    ///   - library: the absolute real path of the library's directory, without a slash at its end.
    ///   - environment: the value of a variable.
    ///   - userId: the user's number.
    public static func derived(library: String, environment: (String) -> String?, userId: UInt32) -> String {
        let digits = SHA256.hash(library.utf8).prefix(8).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
        return directory(environment: environment, userId: userId) + "/" + digits.joined() + ".sock"
    }

    /// `$XDG_RUNTIME_DIR/larder`, else `/tmp/larder-<uid>`. The host makes it, with mode 0700.
    public static func directory(environment: (String) -> String?, userId: UInt32) -> String {
        if let path = LibraryPath.absolute(environment("XDG_RUNTIME_DIR")) { return path + "/larder" }
        return "/tmp/larder-\(userId)"
    }
}
