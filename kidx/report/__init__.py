"""Report of a verification as a self-contained HTML page."""
