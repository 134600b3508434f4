// STATUS: what a person or a program may want to know of the host.

import Glibc
import LarderStore
import LarderWire
