"""Opening, comparing and drawing stores. Reads stores only."""
