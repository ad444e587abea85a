"""Who asks for pages: a browser, a Prometheus (`scraping.py`), clients of HTTP; and the page that `edgeshare top --web`
serves.
"""
