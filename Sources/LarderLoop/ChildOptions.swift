/// Where one of a child's descriptors comes from.
public enum ChildDescriptor {
    /// /dev/null for 0, 1 and 2; closed for the others.
    case null
    /// A copy of a descriptor of this process, which keeps its own. For 0, 1 and 2 it is made blocking.
    case inherited(Int32)
    /// What the child writes comes out of the pipe.
    case output(OutputPipe)
    /// What goes into the pipe is what the child reads.
    case input(InputPipe)
}

/// What to start, and with what.
public struct ChildOptions {
    /// A path, or a name that is looked up in the child's PATH.
    public var program: String
    /// Without the program's own name, which is put in front.
    public var arguments: [String]
    /// `NAME=value` each; nil passes this process's environment on.
    public var environment: [String]?
    /// nil: this process's.
    public var workingDirectory: String?
    /// By the number that they have in the child: input, output, error, then whatever it is told of.
    public var descriptors: [ChildDescriptor]
    /// The child leads a session and a process group of its own, so that `killGroup` reaches what it starts.
    public var isSessionLeader: Bool

    public init(
        program: String, arguments: [String] = [], environment: [String]? = nil, workingDirectory: String? = nil,
        descriptors: [ChildDescriptor] = [.null, .null, .null], isSessionLeader: Bool = false
    ) {
        self.program = program
        self.arguments = arguments
        self.environment = environment
        self.workingDirectory = workingDirectory
        self.descriptors = descriptors
        self.isSessionLeader = isSessionLeader
    }
}
