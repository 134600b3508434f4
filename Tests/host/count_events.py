"""A subscriber in a process of its own, to be stopped: counts saves and says whether all came in order.

    count_events.py SOCKET COUNT

Prints `ready`, then 10 when ten have come, then (COUNT and ten more) the count and `in order`.
"""

import sys

from harness import Wire, Follower, follow


def main(path, count):
    wire = Wire(path, "counter", timeout=60)
    request_id, reply = wire.subscribe(2, types=3, credit=1 << 18)
    follower = Follower(reply)
    saves = []
    print("ready", flush=True)

    def take(entry):
        if entry.type == 3:
            return
        saves.append(entry)
        if len(saves) == 10:
            print(10, flush=True)

    follow(wire, request_id, follower, lambda: len(saves) >= count + 10, 1 << 18, take)
    numbers = [entry.body["record"] for entry in saves[10:]]
    in_order = len(set(map(bytes, numbers))) == count and [e.seq for e in saves] == sorted({e.seq for e in saves})
    print(len(saves), "in order" if in_order else "not in order")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
