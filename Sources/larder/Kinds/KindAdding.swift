// `larder kinds add`: declares a kind, or adds to one.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

struct KindAdding {
    /// A declaration has far fewer bytes.
    private static let fileByteCountMax = 1 << 20

    let context: Context
    let path: String

    init(_ context: Context, path: String) {
        self.context = context
        self.path = path
    }

    /// - Returns: the exit code.
    func run() throws -> Int32 {
        let json: JSONValue
        let shown = path == "-" ? "standard input" : path
        let text = try bytes(shown)
        do throws(JSONError) { json = try JSONValue(parsing: text) } catch { throw Failure(shown, "\(error)") }
        let session = try context.session()
        let name = json.object?["kind"]?.string ?? ""
        let existing = try session.kinds().all.first { $0.name == name }
        let kind: Kind
        do throws(KindFileError) { kind = try KindFill(existing: existing).kind(json) } catch {
            throw Failure(shown, error.description, "larder kinds --help says what a declaration looks like")
        }
        let changes = KindChanges(existing, kind)
        if let existing {
            let least = KindFill.ownFieldNumberMin(existing)
            if let why = kind.conflict(with: existing, ownFieldNumberMin: least) { throw conflict(existing, why) }
        }
        let number = existing?.number ?? (json.object?["number"]?.int64).map { Int(clamping: $0) } ?? 0
        if context.options.has("dry-run") {
            report(changes, kind, nil)
            return 0
        }
        let defined: Defined
        do throws(ClientError) {
            defined = try session.client.define(KindDraft(kind, number: number, version: 0))
        } catch {
            if case .larder(let reply) = error, reply.number == .kindConflict {
                let facts = reply.facts.map { "\n  \($0.name): \($0.value)" }.joined()
                throw Failure("declaring the kind \(name)", reply.message + facts)
            }
            throw Failure("declaring the kind \(name)", error)
        }
        report(changes, kind, defined)
        return 0
    }

    private func conflict(_ existing: Kind, _ why: String) -> Failure {
        Failure(
            "the kind \(existing.name) is there already", "in the library \(why) as in \(path)",
            "larder kinds show \(existing.name) prints what is there; give new fields other names")
    }

    private func bytes(_ shown: String) throws -> [UInt8] {
        let descriptor = path == "-" ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw Failure("reading \(shown)", errorText(errno)) }
        defer { if path != "-" { close(descriptor) } }
        var bytes: [UInt8] = []
        var room = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &room, room.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw Failure("reading \(shown)", errorText(errno)) }
            if count == 0 { return bytes }
            bytes += room[..<count]
            guard bytes.count <= KindAdding.fileByteCountMax else {
                throw Failure("reading \(shown)", "a declaration has at most \(KindAdding.fileByteCountMax) bytes")
            }
        }
    }

    /// - Parameter defined: what the host answered; nil: of a dry run.
    private func report(_ changes: KindChanges, _ kind: Kind, _ defined: Defined?) {
        if context.isJSON {
            context.output.json {
                $0.member("kind", kind.name)
                if let defined {
                    $0.member("number", defined.number)
                    $0.member("version", defined.version)
                } else {
                    $0.member("dry_run", true)
                }
                $0.member("is_changed", defined?.isChanged ?? !changes.lines.isEmpty)
                $0.name("changes")
                $0.beginArray()
                for line in changes.lines { $0.string(line) }
                $0.endArray()
            }
            return
        }
        let isChanged = defined?.isChanged ?? !changes.lines.isEmpty
        let head =
            if !isChanged { "\(kind.name): it is so already" } else if let defined {
                "\(kind.name): \(changes.isNew ? "declared" : "added to"), kind \(defined.number), version \(defined.version)"
            } else { "\(kind.name): would be \(changes.isNew ? "declared" : "added to")" }
        context.output.line(head)
        for line in changes.lines { context.output.line("  " + line) }
    }
}

/// What a declaration adds, in words.
struct KindChanges {
    let isNew: Bool
    private(set) var lines: [String] = []

    init(_ existing: Kind?, _ kind: Kind) {
        isNew = existing == nil
        for field in kind.fields {
            guard let old = existing?.field(field.number) else {
                let constraints = KindJSON.constraintNames(field).map {
                    ", " + $0.split(separator: "_").joined(separator: " ")
                }
                lines.append("field \(field.number), \(field.name): \(field.type.name)\(constraints.joined())")
                continue
            }
            if field.constraints.contains(.indexed), !old.constraints.contains(.indexed) {
                lines.append("field \(field.number), \(field.name): indexed")
            }
            for choice in field.choices where old.choiceName(choice.number) == nil {
                lines.append("field \(field.number), \(field.name): value \(choice.number), \(choice.name)")
            }
        }
        let labels = kind.labelFields.filter { !(existing?.labelFields.contains($0) ?? true) }
        for label in labels.compactMap(kind.field) { lines.append("label: \(label.name)") }
    }
}
