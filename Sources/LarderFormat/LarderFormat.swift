// Placeholder of the room LarderFormat.
