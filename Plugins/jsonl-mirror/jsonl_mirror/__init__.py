"""A file of JSON lines that equals a Larder library as of the cursor stored beside it. See README.md."""
