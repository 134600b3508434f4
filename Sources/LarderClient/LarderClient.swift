// Placeholder of the room LarderClient.
