// Connections that write under the names of the programs that a dump tells of.

import LarderClient
import LarderWire

/// One import for each origin name, opened when it is needed. One thread.
final class LoadOrigins {
    /// A connection, and the import that is open on it.
    final class Origin {
        let client: LarderClient
        fileprivate(set) var number: UInt64
        var counts = ImportCounts()

        fileprivate init(_ client: LarderClient, _ number: UInt64) {
            self.client = client
            self.number = number
        }
    }

    /// Open at once, at most.
    private static let openMax = 16
    /// The name of records that tell none.
    private static let ownName = "larder"

    private let place: Place
    private let source: String
    /// The last used stands last.
    private var open: [(name: String, origin: Origin)] = []

    init(_ place: Place, source: String) {
        self.place = place
        self.source = source
    }

    /// The import under that name.
    ///
    /// - Returns: and whether it was begun just now.
    func origin(_ name: String?) throws(ClientError) -> (Origin, isNew: Bool) {
        let name = name ?? LoadOrigins.ownName
        if let index = open.firstIndex(where: { $0.name == name }) {
            let found = open.remove(at: index)
            open.append(found)
            return (found.origin, false)
        }
        if open.count >= LoadOrigins.openMax {
            try end(open[0].origin, .complete)
            open.removeFirst()
        }
        let client = try LarderClient(path: place.socket, name: name, version: larderVersion)
        let origin = Origin(client, try client.beginImport(source: source).origin)
        open.append((name, origin))
        return (origin, true)
    }

    /// Ends the import and begins another under the same name.
    func renew(_ origin: Origin) throws(ClientError) {
        try origin.client.endImport(origin: origin.number, outcome: .complete, counts: origin.counts)
        origin.counts = ImportCounts()
        origin.number = try origin.client.beginImport(source: source).origin
    }

    private func end(_ origin: Origin, _ outcome: ImportOutcome) throws(ClientError) {
        try origin.client.endImport(origin: origin.number, outcome: outcome, counts: origin.counts)
        origin.client.close()
    }

    func finish(_ outcome: ImportOutcome) throws(ClientError) {
        for (_, origin) in open { try end(origin, outcome) }
        open = []
    }
}
