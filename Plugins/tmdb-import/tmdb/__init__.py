"""What The Movie Database sends, as records of kind title. See README.md."""
