"""``edgeshare top --web``: the shares as a page in a browser, live.

``picture.py`` is what the page shows; ``node_picture.py`` and ``cluster_picture.py`` make it of what is known, and
``history.py`` keeps what was used. ``feed.py`` tells it to those who follow, as it comes, and ``serve.py`` looks and
serves. What runs in the browser is ``page.html`` with ``page.css`` and ``page.js``, which draws each device by
``device.js``, and all by ``elements.js``."""
