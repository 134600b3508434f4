// Opening the library, with somebody at the door meanwhile.

import Glibc
import LarderFormat
import LarderLoop
import LarderStore
import LarderWire

extension Host {
    /// Opens the library, and takes connections from the moment that its lock is held.
    ///
    /// - Returns: the store, and who came meanwhile; nil on a simulated loop, which has no threads.
    static func open(_ options: HostOptions, startedAt: Int64) throws(HostError) -> (Store, WaitingRoom.Left?) {
        var storeOptions = options.store
        if storeOptions.kinds.isEmpty { storeOptions.kinds = Kind.shipped }
        if options.simulation != nil {
            do throws(StoreError) {
                return (
                    try Store(path: options.library, options: storeOptions, files: options.files, now: startedAt), nil
                )
            } catch { throw .store(error) }
        }
        var library: LockedLibrary
        do throws(StoreError) {
            library = try LockedLibrary(
                path: options.library, options: storeOptions, files: options.files, now: startedAt)
        } catch { throw .store(error) }
        let room: WaitingRoom
        do throws(HostError) { room = try waitingRoom(options, library, startedAt) } catch {
            library.giveUp()
            throw error
        }
        library.options.onReading = { [note = room.reading, tell = storeOptions.onReading] percent in
            note(percent)
            tell?(percent)
        }
        do throws(StoreError) {
            let store = try Store(library, now: startedAt)
            return (store, room.end())
        } catch {
            let left = room.end()
            // Before the lock: whoever has that may have a socket there.
            unlink(options.socket)
            left.close()
            unblockSignals()
            library.giveUp()
            throw .store(error)
        }
    }

    private static func waitingRoom(
        _ options: HostOptions, _ library: LockedLibrary, _ startedAt: Int64
    ) throws(HostError) -> WaitingRoom {
        var status = StatusIs()
        status.mode = options.isTransient ? .transient : .serve
        status.pid = Int(getpid())
        status.version = options.version
        status.library = options.library
        status.socket = options.socket
        status.epoch = library.identity.epoch
        status.started = startedAt
        let listening = try HostSocket.listen(at: options.socket, files: options.files)
        do throws(LoopError) {
            return try WaitingRoom(listening: listening, path: options.socket, status: status)
        } catch {
            unlink(options.socket)
            closeDescriptor(listening)
            throw .loop(error)
        }
    }

    /// Whoever started this process may have had them blocked, and the waiting room has.
    static func unblockSignals() {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in [SIGTERM, SIGINT, SIGCHLD] { sigaddset(&signals, number) }
        pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    }
}
