"""When a device is healthy: ``rules`` decides, pure; ``watch`` looks. Of the plugin it uses ``files`` alone."""
