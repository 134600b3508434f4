// The host and its socket, as far as there is one. None is started.

import Glibc
import LarderClient
import LarderFormat
import LarderHost
import LarderWire

struct HostChecks {
    let place: Place

    func run() -> [Finding] {
        var (findings, host) = socket()
        findings += socketPermissions()
        if let host {
            findings += self.host(host.status)
            findings += lastEntry(host.client, host.status)
        }
        findings += plugins(host?.status)
        host?.client.close()
        return findings
    }

    // MARK: The socket

    private func socket() -> ([Finding], (client: LarderClient, status: StatusIs)?) {
        var opening: StatusIs?
        do throws(ClientError) {
            let client = try Session.connect(place) { status in
                opening = status
                return false
            }
            let status = try client.status()
            let mode = status.mode == .serve ? "larder serve" : "started by a command"
            return (
                [Finding("socket", .ok, "\(place.socket): process \(status.pid) answers (\(mode))")], (client, status)
            )
        } catch {
            if case .recovering = error, let opening { return (self.opening(opening), nil) }
            return ([absent(error)], nil)
        }
    }

    private func opening(_ status: StatusIs) -> [Finding] {
        [
            Finding("socket", .ok, "\(place.socket): process \(status.pid) answers"),
            Finding(
                "host", .warn, "it opens its library: \(status.reason)",
                fix: "nothing: commands wait for it, and larder status shows how far it is"),
        ]
    }

    private func absent(_ error: ClientError) -> Finding {
        switch error {
        case .system(ENOENT, _): Finding("socket", .ok, "no host is running; commands start one when they need it")
        case .system(ECONNREFUSED, _):
            Finding(
                "socket", .warn, "\(place.socket) was left behind: nobody listens there",
                fix: "nothing: the next host takes its place")
        case .system(EACCES, _):
            Finding(
                "socket", .bad, "\(place.socket): \(errorText(EACCES))",
                fix: "run larder as the user whose host it is, or name another with --socket")
        default:
            Finding(
                "socket", .bad, Failure("\(place.socket)", error).text,
                fix: "see what process listens there; name another socket with --socket")
        }
    }

    private func socketPermissions() -> [Finding] {
        var status = stat()
        guard lstat(place.socket, &status) == 0 else { return [] }
        let directory = place.socket.lastIndex(of: "/").map { String(place.socket[..<$0]) } ?? "."
        if status.st_mode & S_IFMT != S_IFSOCK {
            return [
                Finding("socket_file", .bad, "\(place.socket) is no socket", fix: "name another path with --socket")
            ]
        }
        if status.st_uid != getuid() {
            return [
                Finding(
                    "socket_file", .bad, "\(place.socket) belongs to user \(status.st_uid)",
                    fix: "name another path with --socket")
            ]
        }
        if status.st_mode & 0o077 != 0 {
            return [
                Finding(
                    "socket_file", .warn, "others may connect to \(place.socket)", fix: "chmod 600 \(place.socket)")
            ]
        }
        if stat(directory, &status) == 0, status.st_mode & 0o022 != 0, status.st_mode & S_ISVTX == 0 {
            return [
                Finding(
                    "socket_file", .warn, "others may put another socket into \(directory)",
                    fix: "chmod 700 \(directory)")
            ]
        }
        return [Finding("socket_file", .ok, "only you can connect")]
    }

    // MARK: The host

    private func host(_ status: StatusIs) -> [Finding] {
        var findings: [Finding] = []
        if status.state == "serving" {
            findings.append(Finding("host", .ok, "serving since \(Formats.localTime(milliseconds: status.started))"))
        } else if status.state == "full" {
            findings.append(
                Finding(
                    "host", .bad, "nothing can be saved: \(status.reason)",
                    fix: "make room on the library's disk; saving goes on by itself"))
        } else {
            findings.append(
                Finding(
                    "host", .bad, status.state + (status.reason.isEmpty ? "" : ": \(status.reason)"),
                    fix: status.state == "read_only" ? "remove the cause, then start the host again" : ""))
        }
        if status.version != larderVersion {
            findings.append(
                Finding(
                    "version", .warn, "the host is larder \(status.version), this is \(larderVersion)",
                    fix: "start the host again"))
        }
        if status.library != place.library {
            findings.append(
                Finding(
                    "host_library", .warn, "the host behind this socket serves \(status.library), not \(place.library)",
                    fix: "name the library that you mean with --library, or another --socket"))
        }
        return findings
    }

    private func lastEntry(_ client: LarderClient, _ status: StatusIs) -> [Finding] {
        guard status.lastSeq > 0, let run = try? client.entries([status.lastSeq]).first else { return [] }
        let now = Clock.wall
        guard run.time > now + 60_000 else { return [] }
        return [
            Finding(
                "last_entry", .warn,
                "the last entry is of \(Formats.localTime(milliseconds: run.time)), which is still to come",
                fix: "set the clock (timedatectl set-ntp true)")
        ]
    }

    // MARK: Plugins

    private func plugins(_ status: StatusIs?) -> [Finding] {
        let registry = PluginRegistry(library: place.library)
        let names: [String]
        do throws(PluginError) { names = try registry.names() } catch {
            return access(place.library + "/plugins", F_OK) == 0 ? [Finding("plugins", .bad, "\(error)")] : []
        }
        if names.isEmpty { return [Finding("plugins", .ok, "none are registered")] }
        return names.map { name in
            do throws(PluginError) {
                let record = try registry.record(of: name)
                let manifest = try registry.manifest(of: name)
                guard SystemChecks.path(of: manifest.program) != nil else {
                    return Finding(
                        "plugin_\(name)", record.isEnabled ? .bad : .warn,
                        "its program \(manifest.program) is not there",
                        fix: "install \(manifest.program), or larder plugin disable \(name)")
                }
                return state(name, record.isEnabled, status?.plugins.first { $0.name == name })
            } catch {
                return Finding(
                    "plugin_\(name)", .bad, "\(error)", fix: "larder plugin remove \(name), then add it again")
            }
        }
    }

    private func state(_ name: String, _ isEnabled: Bool, _ running: StatusIs.Plugin?) -> Finding {
        guard let running else { return Finding("plugin_\(name)", .ok, isEnabled ? "enabled" : "disabled") }
        guard running.lastError.isEmpty else {
            return Finding(
                "plugin_\(name)", .warn, "\(running.state): \(running.lastError)", fix: "larder plugin log \(name)")
        }
        return Finding("plugin_\(name)", .ok, running.state)
    }
}
