"""How shares are shown to people, by the command line and by the cluster part.

``words`` are those for one allocation, ``used`` and ``waiting_pods`` what is known of a cluster. Of the page,
``picture`` is what it shows; ``node_picture`` and ``service_picture`` make it of what is known, ``history`` keeps what
was used, and ``feed`` tells it to those who follow, as it comes. What runs in the browser is in ``browser/``, which
``page_files`` serves: ``page.html`` with ``page.css`` and ``page.js``, which draws each device by ``device.js``, and
all by ``elements.js``; ``login.html`` asks for a token by ``login.js``."""
