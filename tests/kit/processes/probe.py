"""Whether a server says that it is ready."""

import http.client
import ssl
from pathlib import Path
from urllib.parse import urlsplit

TIMEOUT_S = 2


def answers(url: str, authority: Path | None = None) -> bool:
    """Whether `url` answers 200; an https server's certificate must be signed by `authority`.

    No proxy is asked, whatever the environment says: the servers are this machine's.
    """
    parts = urlsplit(url)
    if parts.scheme == "https":
        context = ssl.create_default_context(cafile=authority)
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(
            parts.netloc, timeout=TIMEOUT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
    try:
        connection.request("GET", parts.path)
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False  # Nobody listens yet, or does not speak yet.
    finally:
        connection.close()
