// A command's connection: to the host that is there, or to one that it starts.

import Glibc
import LarderClient
import LarderFormat
import LarderWire

/// The connection of one command. One thread.
final class Session {
    /// How long a host that is stopping is waited for.
    private static let patienceMilliseconds: Int64 = 10_000
    /// After so long a host that has not answered is asked how far its opening is.
    private static let statusMilliseconds = 300

    let place: Place
    private(set) var client: LarderClient
    private let note: (String) -> Void
    /// The process that this command started, until it was seen to end.
    private var startedHost: pid_t = 0

    /// - Parameter whileRecovering: as of `connect`; where it waits, `note` is told as well.
    init(
        place: Place, note: @escaping (String) -> Void, whileRecovering: (StatusIs) -> Bool = { _ in true }
    ) throws {
        self.place = place
        self.note = note
        (client, startedHost) = try Session.open(place, note, whileRecovering)
    }

    private static func open(
        _ place: Place, _ note: @escaping (String) -> Void, _ whileRecovering: (StatusIs) -> Bool = { _ in true }
    ) throws -> (LarderClient, pid_t) {
        var deadline = Clock.monotonic + patienceMilliseconds
        let notes = RecoveryNotes(say: note)
        func connect() throws(ClientError) -> LarderClient {
            try Session.connect(place) { status in
                deadline = Clock.monotonic + patienceMilliseconds
                guard whileRecovering(status) else { return false }
                notes.recovering(status)
                return true
            }
        }
        while true {
            let loss: ClientError
            do throws(ClientError) { return (try connect(), 0) } catch { loss = error }
            switch Absence(loss) {
            case .nobody:
                do throws(Failure) {
                    let started = try HostStarter.start(place, note: note)
                    if let client = try? connect() { return (client, started) }
                } catch {
                    // Another command may have been quicker.
                    if let client = try? connect() { return (client, 0) }
                    if Clock.monotonic >= deadline || !HostStarter.mayBeARace(error) { throw error }
                }
            case .leaving where Clock.monotonic < deadline: break
            case .leaving, .other: throw Failure("connecting to \(place.socket)", loss)
            }
            usleep(50_000)
        }
    }

    /// Connects to a host that is there; starts none.
    ///
    /// - Parameter whileRecovering: told how the host is while it opens its library; whether to wait on.
    static func connect(
        _ place: Place, whileRecovering: (StatusIs) -> Bool = { _ in true }
    ) throws(ClientError) -> LarderClient {
        try LarderClient(
            path: place.socket, name: "larder", version: larderVersion,
            timeouts: LarderClient.Timeouts(statusMilliseconds: statusMilliseconds), whileRecovering: whileRecovering)
    }

    /// What it means that a connection could not be made.
    private enum Absence {
        /// No host listens.
        case nobody
        /// One is on its way out.
        case leaving
        case other

        init(_ error: ClientError) {
            switch error {
            case .system(ENOENT, _), .system(ECONNREFUSED, _): self = .nobody
            case .connectionLost: self = .leaving
            case .larder(let reply) where reply.number == .shuttingDown: self = .leaving
            default: self = .other
            }
        }
    }

    /// Connects again after a loss, starting a host where there is none, for as long as the deadline allows.
    func reconnect(after loss: ClientError, withinMilliseconds limit: Int64 = 30_000) throws(ClientError)
        -> LarderClient
    {
        let deadline = Clock.monotonic + limit
        note("\(loss); connecting again …")
        client.close()
        while true {
            do {
                let (next, started) = try Session.open(place, note)
                reap()
                if started != 0 { startedHost = started }
                client = next
                return next
            } catch {
                if Clock.monotonic >= deadline {
                    note((error as? Failure)?.text ?? "\(error)")
                    throw loss
                }
                usleep(200_000)
            }
        }
    }

    private func reap() {
        if startedHost != 0 { waitpid(startedHost, nil, WNOHANG) }
    }

    // MARK: Kinds

    /// The library's kinds, asked for once.
    func kinds() throws -> Kinds {
        if let known { return known }
        let kinds = Kinds(try attempt("asking for the kinds") { try client.kinds() })
        known = kinds
        return kinds
    }
    private var known: Kinds?

    /// The number of a kind by its name; nil: 0, all.
    func kindNumber(_ name: String?) throws -> Int {
        guard let name else { return 0 }
        return try kinds().named(name).number
    }
}

/// Kinds by name and number.
struct Kinds {
    let all: [Kind]
    private let byNumber: [Int: Kind]

    init(_ kinds: [Kind]) {
        all = kinds.sorted { $0.number < $1.number }
        byNumber = Dictionary(kinds.map { ($0.number, $0) }) { $1 }
    }

    subscript(_ number: Int) -> Kind? { byNumber[number] }

    func named(_ name: String) throws(Failure) -> Kind {
        if let kind = all.first(where: { $0.name == name }) { return kind }
        let near = Suggestion.nearest(to: name, in: all.map(\.name)).map { "did you mean \($0)? " } ?? ""
        throw Failure("no kind is named “\(name)”", "", near + "larder kinds lists the kinds", exitCode: 2)
    }

    /// Reads `title:tmdb/movie/603`.
    func key(_ text: String) throws(Failure) -> RecordKey {
        if let colon = text.utf8.firstIndex(of: 0x3A) { _ = try named(String(text[..<colon])) }
        do throws(RecordTextError) {
            return try RecordKey(text: text) { name in all.first { $0.name == name } }
        } catch {
            throw Failure("the key “\(text)”", "\(error)", "larder list --keys shows keys", exitCode: 2)
        }
    }
}
