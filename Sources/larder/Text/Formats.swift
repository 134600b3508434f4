// Numbers, bytes, durations and times for people.

import Glibc

enum Formats {
    /// `17,472`.
    static func count(_ value: Int) -> String {
        let digits = String(value.magnitude)
        var out = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { out += "," }
            out.append(digit)
        }
        return (value < 0 ? "-" : "") + out
    }

    /// `1 record`, `2 records`.
    static func count(_ value: Int, _ noun: String, _ plural: String? = nil) -> String {
        "\(count(value)) \(value == 1 ? noun : plural ?? noun + "s")"
    }

    /// `512 bytes`, `1.5 KiB`, `64 MiB`.
    static func bytes(_ value: Int) -> String {
        guard value >= 1_024 else { return value == 1 ? "1 byte" : "\(value) bytes" }
        var scaled = Double(value)
        var unit = ""
        for next in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
            scaled /= 1_024
            unit = next
            // What would be written 1024.0 is one of the next unit.
            if scaled < 1_023.95 { break }
        }
        return "\(oneDigit(scaled)) \(unit)"
    }

    /// Up to one digit behind the point, below 100.
    static func oneDigit(_ value: Double) -> String {
        guard value.isFinite else { return "?" }
        if value >= 99.95 { return count(Int(value.rounded())) }
        let tenths = Int((value * 10).rounded())
        return tenths % 10 == 0 ? "\(tenths / 10)" : "\(tenths / 10).\(tenths % 10)"
    }

    /// `0.4 s`, `59 s`, `3 min 5 s`, `2 h 4 min`, `3 d 2 h`.
    static func duration(milliseconds: Int64) -> String {
        let milliseconds = max(milliseconds, 0)
        if milliseconds < 9_950 { return oneDigit(Double(milliseconds) / 1_000) + " s" }
        let seconds = (milliseconds + 500) / 1_000
        func pair(_ large: Int64, _ unit: String, _ small: Int64, _ smallUnit: String) -> String {
            small == 0 ? "\(large) \(unit)" : "\(large) \(unit) \(small) \(smallUnit)"
        }
        switch seconds {
        case ..<60: return "\(seconds) s"
        case ..<3_600: return pair(seconds / 60, "min", seconds % 60, "s")
        case ..<86_400: return pair(seconds / 3_600, "h", seconds % 3_600 / 60, "min")
        default: return pair(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h")
        }
    }

    /// `312,000/s`; two digits count, so that it does not flicker.
    static func rate(_ count: Int, milliseconds: Int64) -> String {
        let perSecond = Double(count) * 1_000 / Double(max(milliseconds, 1))
        guard perSecond >= 100 else { return oneDigit(perSecond) + "/s" }
        var step = 1
        while perSecond / Double(step) >= 100 { step *= 10 }
        return Formats.count(Int((perSecond / Double(step)).rounded()) * step) + "/s"
    }

    /// `2026-01-31 17:00` in the local time zone; with seconds for events.
    static func localTime(milliseconds: Int64, withSeconds: Bool = false) -> String {
        var seconds = time_t(milliseconds >= 0 ? milliseconds / 1_000 : (milliseconds - 999) / 1_000)
        var parts = tm()
        guard localtime_r(&seconds, &parts) != nil else { return "?" }
        var room = [CChar](repeating: 0, count: 64)
        let form = withSeconds ? "%Y-%m-%d %H:%M:%S" : "%Y-%m-%d %H:%M"
        let count = strftime(&room, room.count, form, &parts)
        return String(decoding: room.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// Clocks, in milliseconds.
enum Clock {
    /// Since some point in the past; never goes back.
    static var monotonic: Int64 { read(CLOCK_MONOTONIC) }
    /// Since 1970.
    static var wall: Int64 { read(CLOCK_REALTIME) }

    private static func read(_ clock: clockid_t) -> Int64 {
        var now = timespec()
        clock_gettime(clock, &now)
        return Int64(now.tv_sec) * 1_000 + Int64(now.tv_nsec) / 1_000_000
    }
}
