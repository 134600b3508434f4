// Placeholder of the room LarderWire.
