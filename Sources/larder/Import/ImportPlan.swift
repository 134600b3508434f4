// Who reads which input.

import LarderFormat
import LarderHost

/// Decides, before anything is imported, who reads each input: this program, or an importer plugin.
struct ImportPlan {
    private(set) var lines: [ImportSource] = []
    private(set) var importers: [(Manifest, [ImportSource])] = []

    init(_ sources: [ImportSource], _ options: ImportOptions, _ session: Session) throws(Failure) {
        let catalogue = ImporterCatalogue(library: session.place.library)
        for source in sources {
            switch options.format {
            case "jsonl"?:
                if ImportSample(try source.peek()).shape == .empty { throw ImportPlan.empty(source) }
                lines.append(source)
            case let name?: add(source, try catalogue.named(name))
            case nil: try choose(source, options, catalogue)
            }
        }
    }

    private static func empty(_ source: ImportSource) -> Failure {
        Failure("importing", "\(source.shownName) is empty", "nothing was imported")
    }

    private mutating func add(_ source: ImportSource, _ importer: Manifest) {
        if let index = importers.firstIndex(where: { $0.0.name == importer.name }) {
            importers[index].1.append(source)
        } else {
            importers.append((importer, [source]))
        }
    }

    private mutating func choose(
        _ source: ImportSource, _ options: ImportOptions, _ catalogue: ImporterCatalogue
    ) throws(Failure) {
        let sample = ImportSample(try source.peek())
        if sample.shape == .empty { throw ImportPlan.empty(source) }
        let hasKind = options.kind != nil || sample.lineKeys?.contains("kind") == true
        if sample.shape == .jsonLines, hasKind { return lines.append(source) }
        if let importer = catalogue.recognising(source.name, sample) { return add(source, importer) }
        // A single line is also one object, which an importer may know better.
        if sample.isJSONLines, hasKind || sample.lineKeys == nil { return lines.append(source) }
        let tried = catalogue.importers.map(\.name)
        let triedWords =
            tried.isEmpty ? "no importer plugin is registered" : "unknown to " + tried.joined(separator: ", ")
        if sample.isJSONLines {
            throw Failure(
                "importing \(source.shownName)", "its first line names no kind (\(triedWords))",
                "say --kind KIND; larder kinds lists them", exitCode: 2)
        }
        let hint =
            switch sample.shape {
            case .jsonArray: "jq -c '.[]' makes lines of it, which --kind KIND imports"
            case .jsonObject: "jq -c makes lines of what is in it, which --kind KIND imports"
            default: "larder plugin add DIR registers an importer, --format NAME chooses one"
            }
        throw Failure(
            "importing \(source.shownName)",
            "nobody knows this format: it is not JSON lines but \(sample.shapeName), and \(triedWords)", hint)
    }
}

/// The importer plugins of a library.
struct ImporterCatalogue {
    /// In the order of their names; those that are disabled, or broken, are not among them.
    let importers: [Manifest]
    /// What is wrong with others.
    private let faults: [(name: String, why: String)]

    init(library: String) {
        let registry = PluginRegistry(library: library)
        var importers: [Manifest] = []
        var faults: [(name: String, why: String)] = []
        for (name, record) in (try? registry.list()) ?? [] {
            do throws(PluginError) {
                let isEnabled = try record.get().isEnabled
                let manifest = try registry.manifest(of: name)
                guard manifest.roles.contains(.importer) else { continue }
                if isEnabled { importers.append(manifest) } else { faults.append((name, "it is disabled")) }
            } catch {
                faults.append((name, "\(error)"))
            }
        }
        self.importers = importers
        self.faults = faults
    }

    func named(_ name: String) throws(Failure) -> Manifest {
        if let found = importers.first(where: { $0.name == name }) { return found }
        if let fault = faults.first(where: { $0.name == name }) {
            throw Failure("the importer \(name)", fault.why, "larder plugin list shows the plugins")
        }
        let near =
            Suggestion.nearest(to: name, in: importers.map(\.name) + ["jsonl"]).map { "did you mean \($0)? " } ?? ""
        throw Failure(
            "no importer is named “\(name)”", "",
            near + "there are: " + (["jsonl"] + importers.map(\.name)).joined(separator: ", "),
            exitCode: 2)
    }

    /// The first whose manifest recognises the input.
    func recognising(_ fileName: String, _ sample: ImportSample) -> Manifest? {
        importers.first { importer in
            importer.recognises.contains {
                $0.matches(fileName: fileName, objectKeys: sample.objectKeys, lineKeys: sample.lineKeys)
            }
        }
    }
}
