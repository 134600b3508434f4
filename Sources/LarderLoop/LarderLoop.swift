// Placeholder of the room LarderLoop.
