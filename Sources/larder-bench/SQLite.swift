// SQLite beside Larder, in this process: the library is loaded when a figure compares with it, and may be absent.

import Glibc
import LarderFormat

/// A database in a file. One thread.
final class SQLite {
    private typealias Open = @convention(c) (UnsafePointer<CChar>, UnsafeMutablePointer<OpaquePointer?>) -> Int32
    private typealias Close = @convention(c) (OpaquePointer) -> Int32
    private typealias Prepare =
        @convention(c) (
            OpaquePointer, UnsafePointer<CChar>, Int32, UnsafeMutablePointer<OpaquePointer?>,
            UnsafeMutablePointer<UnsafePointer<CChar>?>?
        ) -> Int32
    private typealias OfStatement = @convention(c) (OpaquePointer) -> Int32
    private typealias BindInteger = @convention(c) (OpaquePointer, Int32, Int64) -> Int32
    private typealias BindDouble = @convention(c) (OpaquePointer, Int32, Double) -> Int32
    private typealias BindBytes =
        @convention(c) (
            OpaquePointer, Int32, UnsafeRawPointer?, Int32, OpaquePointer?
        ) -> Int32
    private typealias ColumnBytes = @convention(c) (OpaquePointer, Int32) -> UnsafeRawPointer?
    private typealias ColumnCount = @convention(c) (OpaquePointer, Int32) -> Int32
    private typealias Message = @convention(c) (OpaquePointer) -> UnsafePointer<CChar>?
    private typealias Version = @convention(c) () -> UnsafePointer<CChar>

    private static let row: Int32 = 100
    private static let done: Int32 = 101
    private static let names = ["libsqlite3.so.0", "libsqlite3.so"]

    private let library: UnsafeMutableRawPointer
    private let database: OpaquePointer
    let version: String

    /// Nil where the machine has no SQLite.
    init?(path: String) throws(BenchError) {
        guard let library = SQLite.names.lazy.compactMap({ dlopen($0, RTLD_NOW) }).first else { return nil }
        self.library = library
        guard let open: Open = SQLite.function("sqlite3_open", library),
            let version: Version = SQLite.function("sqlite3_libversion", library)
        else { throw .child("this libsqlite3 lacks functions") }
        self.version = String(cString: version())
        var database: OpaquePointer?
        guard open(path, &database) == 0, let database else { throw .child("SQLite does not open \(path)") }
        self.database = database
    }

    deinit {
        let close: Close? = SQLite.function("sqlite3_close", library)
        _ = close?(database)
    }

    private static func function<F>(_ name: String, _ library: UnsafeMutableRawPointer) -> F? {
        dlsym(library, name).map { unsafeBitCast($0, to: F.self) }
    }

    private func function<F>(_ name: String) throws(BenchError) -> F {
        guard let found: F = SQLite.function(name, library) else { throw .child("libsqlite3 lacks \(name)") }
        return found
    }

    private func failure(_ what: String) -> BenchError {
        let message: Message? = SQLite.function("sqlite3_errmsg", library)
        return .child("SQLite: \(what): \(message?(database).map { String(cString: $0) } ?? "?")")
    }

    private func statement(_ sql: String) throws(BenchError) -> OpaquePointer {
        let prepare: Prepare = try function("sqlite3_prepare_v2")
        var statement: OpaquePointer?
        guard prepare(database, sql, -1, &statement, nil) == 0, let statement else { throw failure(sql) }
        return statement
    }

    private func finish(_ statement: OpaquePointer) throws(BenchError) {
        let finalize: OfStatement = try function("sqlite3_finalize")
        _ = finalize(statement)
    }

    /// Runs one statement, whatever rows it has.
    func run(_ sql: String) throws(BenchError) {
        _ = try scan(sql, columnCount: 0)
    }

    /// Runs a query and reads the bytes of its columns, as somebody who wants the records does.
    ///
    /// - Returns: rows, and bytes of all columns.
    func scan(_ sql: String, columnCount: Int32) throws(BenchError) -> (rows: Int, byteCount: Int) {
        let step: OfStatement = try function("sqlite3_step")
        let blob: ColumnBytes = try function("sqlite3_column_blob")
        let bytes: ColumnCount = try function("sqlite3_column_bytes")
        let statement = try statement(sql)
        var rows = 0
        var byteCount = 0
        var code = step(statement)
        while code == SQLite.row {
            for column in 0..<columnCount {
                _ = blob(statement, column)
                byteCount += Int(bytes(statement, column))
            }
            rows += 1
            code = step(statement)
        }
        try finish(statement)
        guard code == SQLite.done else { throw failure(sql) }
        return (rows, byteCount)
    }

    /// Fills a table with the dataset, a column for each field.
    ///
    /// - Parameter keyedById: a table as the rivals' was measured with: the id alone is the key, and no source.
    func fill(_ titles: PackedTitles, keyedById: Bool = false) throws(BenchError) {
        try run("pragma journal_mode = off")
        try run("pragma synchronous = off")
        try run(
            keyedById
                ? """
                create table title (media_type integer, id integer primary key, original_title text, original_name text,
                overview text, poster_path text, release_date integer, vote_count integer, vote_average real)
                """
                : """
                create table title (source text, media_type integer, id integer, original_title text, original_name text,
                overview text, poster_path text, release_date integer, vote_count integer, vote_average real,
                primary key (source, media_type, id))
                """)
        try run("begin")
        let step: OfStatement = try function("sqlite3_step")
        let reset: OfStatement = try function("sqlite3_reset")
        let integer: BindInteger = try function("sqlite3_bind_int64")
        let double: BindDouble = try function("sqlite3_bind_double")
        let text: BindBytes = try function("sqlite3_bind_text")
        let insert = try statement(
            "insert into title values (\(keyedById ? "" : "'tmdb', ")?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")
        func bind(_ column: Int32, _ bytes: UnsafeRawBufferPointer?) {
            guard let bytes else {
                _ = text(insert, column, nil, 0, nil)
                return
            }
            // The last argument: the bytes stay where they are until the row is written.
            _ = text(insert, column, bytes.baseAddress, Int32(bytes.count), nil)
        }
        for index in 0..<titles.count {
            let title = titles[index]
            _ = integer(insert, 1, title.isSeries ? 2 : 1)
            _ = integer(insert, 2, title.id)
            bind(3, title.originalTitle)
            bind(4, title.originalName)
            bind(5, title.overview)
            bind(6, title.posterPath)
            _ = integer(insert, 7, Int64(title.date))
            _ = integer(insert, 8, Int64(title.voteCount))
            _ = double(insert, 9, title.voteAverage)
            guard step(insert) == SQLite.done else { throw failure("insert") }
            _ = reset(insert)
        }
        try finish(insert)
        try run("commit")
    }
}
