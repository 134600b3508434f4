// Tells from its first bytes what an input is, so that it goes to the importer that knows it.

/// The form of an input.
public enum InputShape: Equatable, Sendable {
    /// Objects, each on a line of its own: the first line ends its object and more lines follow.
    case jsonLines
    /// One object, with the names of its members as far as the sample goes. A file of one line is this too: whoever
    /// knows no importer for those names takes it as a line.
    case jsonObject(topLevelKeys: [String])
    /// One array.
    case jsonArray
    /// Nothing, or white space.
    case empty
    /// No JSON at its start.
    case other

    /// - Parameter sample: the first bytes of the input; 64 KiB tell enough.
    public static func sniff(_ sample: UnsafeRawBufferPointer) -> InputShape {
        let hasMark = sample.starts(with: [0xEF, 0xBB, 0xBF])
        let text = trimmed(hasMark ? UnsafeRawBufferPointer(rebasing: sample[3...]) : sample)
        guard let first = text.first else { return .empty }
        guard first == 0x7B || first == 0x5B else { return .other }
        var reader = JSONReader(text)
        var keys: [String] = []
        do throws(JSONError) {
            _ = try reader.next()
            while reader.depth > 0 {
                if try reader.next() == .name && reader.depth == 1 { keys.append(reader.text.string) }
            }
        } catch {
            return ofBroken(text, error, keys)
        }
        let firstEnd = reader.offset
        let rest = text[firstEnd...]
        if rest.allSatisfy({ $0 == 0x20 || ($0 >= 0x09 && $0 <= 0x0D) }) {
            return first == 0x7B ? .jsonObject(topLevelKeys: keys) : .jsonArray
        }
        // More behind the value: on lines of their own, or no JSON.
        let gap = rest.prefix { $0 == 0x20 || ($0 >= 0x09 && $0 <= 0x0D) }
        return gap.contains(0x0A) && !text[..<firstEnd].contains(0x0A) ? .jsonLines : .other
    }

    /// The sample's first value does not end in it, or is wrong.
    private static func ofBroken(_ text: UnsafeRawBufferPointer, _ error: JSONError, _ keys: [String]) -> InputShape {
        let isObject = text.first == 0x7B
        // A sample may end inside a character.
        let isCut = error.code == .unexpectedEnd || (error.code == .badUnicode && error.offset >= text.count - 3)
        if isCut { return isObject ? .jsonObject(topLevelKeys: keys) : .jsonArray }
        // A line that is wrong by itself says nothing about the next ones.
        let isFirstLine = !text[..<min(error.offset, text.count)].contains(0x0A)
        let hasMoreLines = text.contains(0x0A)
        return isObject && isFirstLine && hasMoreLines ? .jsonLines : .other
    }
}
