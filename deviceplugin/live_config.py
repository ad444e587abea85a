"""The configuration of now, for everybody. It changes with its file and with the node's label; what is wrong is
refused as a whole, and what was there before stays."""

import asyncio
import logging
from pathlib import Path

from deviceplugin.config import Config, NodeConfig
from deviceplugin.files import remove_unfinished, write_file
from edgeshare.config_file import read_config
from edgeshare.contract.names import CONFIG_DEFAULT
from edgeshare.log_trouble import Trouble
from edgeshare.waiting import Change

logger = logging.getLogger(__name__)


class Settings:
    """What holds on this node."""

    def __init__(self, path: Path | None) -> None:
        """Reads the file; raises InvalidRequest, in one line, for a wrong one."""
        self._path = path
        self.file = read_config(path, Config)
        self.name = CONFIG_DEFAULT
        self.now: NodeConfig = self.file.for_node(self.name)
        self._change = Change()

    def next_change(self) -> asyncio.Event:
        """Set when ``now`` is no longer what holds."""
        return self._change.next

    def reload(self) -> None:
        """Reads the file anew. Raises InvalidRequest for a wrong one, NotFound where it no longer has this node's
        config; then nothing has changed."""
        self._set(read_config(self._path, Config), self.name)

    def choose(self, name: str) -> None:
        """Goes over to the config of this name. Raises NotFound where there is none; then nothing has changed."""
        self._set(self.file, name)

    def _set(self, file: Config, name: str) -> None:
        now = file.for_node(name)
        was = self.file.fixed()
        fixed = [key for key, value in file.fixed().items() if value != was[key]]
        if fixed:
            logger.warning("%s changed in %s: read once, so start the plugin anew", ", ".join(fixed), self._path)
        if (file, name) != (self.file, self.name):
            logger.info("config '%s' of %s holds now", name, self._path or "the defaults")
        self.file, self.name = file, name
        if now != self.now:
            self.now = now
            self._change.tell()


class ChosenName:
    """Which config the node's label chose, kept for a start without the API server."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unread = Trouble(logger, "which config this node had is not known")
        self._unkept = Trouble(logger, "which config this node has is not kept")

    def read(self) -> str:
        """The name; empty where none was kept."""
        try:
            return self._path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return ""
        except (OSError, UnicodeDecodeError) as error:
            self._unread.fails(f"{self._path}: {error}")
            return ""

    def write(self, name: str) -> None:
        """Keeps it, if it is another one; says so where that cannot be done."""
        remove_unfinished(self._path.parent, self._path.name)
        if self.read() == name:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self._path, f"{name}\n".encode())
            self._unkept.over()
        except OSError as error:
            self._unkept.fails(f"{self._path}: {error}")
