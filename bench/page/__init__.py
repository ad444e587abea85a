"""What the page of a large cluster takes: a browser until it is seen, and its command while nobody follows."""
