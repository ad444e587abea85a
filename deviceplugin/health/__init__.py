"""When a device is healthy: begin with ``rules``, which decides, pure, by what ``state`` has; ``watch`` looks, and
``health_records`` keeps what comes of it. Of the plugin it uses ``files`` alone.
"""
