// What is said of several runs.

/// The values of the same figure in several runs.
struct Samples {
    private(set) var values: [Double] = []

    mutating func add(_ value: Double) { values.append(value) }
    var isEmpty: Bool { values.isEmpty }
    var min: Double { values.min() ?? 0 }
    var max: Double { values.max() ?? 0 }

    /// The middle one; of an even number the lower of the two.
    var median: Double {
        let sorted = values.sorted()
        return sorted.isEmpty ? 0 : sorted[(sorted.count - 1) / 2]
    }
}

extension ResultLine {
    /// Sets `seconds`, its extremes, and the rates that follow from the median.
    mutating func set(seconds: Samples, records: Int, byteCount: Int) {
        set("records", records)
        set("seconds", seconds.median)
        set("records_per_second", Double(records) / seconds.median, places: 0)
        set("bytes_per_second", Double(byteCount) / seconds.median, places: 0)
        setRange("seconds", seconds)
    }

    mutating func setRange(_ name: String, _ samples: Samples, places: Int = 4) {
        set("runs", samples.values.count)
        set(name + "_min", samples.min, places: places)
        set(name + "_max", samples.max, places: places)
    }

    /// The CPU time of the host's process, which other programs on the machine change less than the clock.
    mutating func set(hostCPU: Samples, records: Int) {
        set("host_cpu_nanoseconds_per_record", hostCPU.median * 1e9 / Double(records), places: 0)
    }

    /// A ratio of two figures of the same run.
    mutating func setRatio(_ name: String, _ ratios: Samples) {
        guard !ratios.isEmpty else { return self[name] = .null }
        set(name, ratios.median, places: 3)
        set(name + "_min", ratios.min, places: 3)
        set(name + "_max", ratios.max, places: 3)
    }
}
