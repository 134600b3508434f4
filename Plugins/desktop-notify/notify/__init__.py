"""What is saved and deleted in a Larder library, shown to a person. See README.md."""
