// The room of the loop.
