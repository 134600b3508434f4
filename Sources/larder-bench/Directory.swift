// Directories that the run fills and clears.

import CLarder
import Glibc

func makeDirectory(_ path: String) throws(BenchError) {
    if mkdir(path, 0o700) != 0 && errno != EEXIST { throw .system("mkdir \(path)", code: errno) }
}

/// Names in a directory with their byte counts; directories count nothing.
func files(in path: String) -> [(name: String, byteCount: Int, isDirectory: Bool)] {
    guard let directory = opendir(path) else { return [] }
    defer { closedir(directory) }
    var found: [(name: String, byteCount: Int, isDirectory: Bool)] = []
    while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        var facts = stat()
        guard name != ".", name != "..", lstat(path + "/" + name, &facts) == 0 else { continue }
        let isDirectory = facts.st_mode & S_IFMT == S_IFDIR
        found.append((name, isDirectory ? 0 : Int(facts.st_size), isDirectory))
    }
    return found
}

/// Removes a directory that this run has made, and what is in it.
func removeDirectory(_ path: String) {
    for file in files(in: path) {
        if file.isDirectory { removeDirectory(path + "/" + file.name) } else { unlink(path + "/" + file.name) }
    }
    rmdir(path)
}

/// Has the system forget what it holds of a library's log, so that the next read comes from the disk.
func dropCache(ofLibrary path: String) {
    for file in files(in: path + "/log") {
        let descriptor = larder_open(path + "/log/" + file.name, O_RDONLY, 0)
        guard descriptor >= 0 else { continue }
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED)
        close(descriptor)
    }
}

/// Bytes of a library's files: the segments, and all others.
func diskBytes(ofLibrary path: String) -> (segments: Int, others: Int) {
    var segments = 0
    var others = 0
    for file in files(in: path) + files(in: path + "/log") {
        if file.name.hasSuffix(".seg") { segments += file.byteCount } else { others += file.byteCount }
    }
    return (segments, others)
}
