import Glibc
import LarderHost

@main
struct Main {
    static func main() {
        let arguments = CommandLine.arguments
        // The hidden command that the host starts its plugins through.
        if arguments.count > 1, arguments[1] == "guard" { exit(runGuard(Array(arguments[2...]))) }
    }
}
