// Placeholder of the room LarderHost.
