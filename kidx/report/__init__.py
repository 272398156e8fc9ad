"""A verification as a page that a browser shows, without anything fetched from elsewhere."""
