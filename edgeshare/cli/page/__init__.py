"""``edgeshare top --web``: the shares as a page in a browser of this machine, live.

What it shows, and what runs in the browser, is ``edgeshare.shown``; ``serve.py`` looks and serves, and
``cluster_picture.py`` is what an API server alone knows."""
