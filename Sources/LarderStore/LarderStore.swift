// Placeholder of the room LarderStore.
