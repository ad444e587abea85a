"""How soon a browser shows the page of a large cluster, and what the page's command takes while nobody follows it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from bench.assigner.api_server import ApiServer
from bench.assigner.objects import GPUS, Json, Pod, accelerators
from bench.assigner.process import api_tls, command, write_kubeconfig
from bench.host import cpu_seconds
from bench.measurement import Bench, Effort, Measurement
from bench.report import Row, Target
from edgeshare.contract.errors import Unavailable
from tests.kit.pages.browser import Browser, chromium
from tests.kit.processes.errors import NodeError

NODES = 125
ON_A_GPU = 2
"""Allocations, of 50 % each."""

FIRST = "until the page shows the first devices"
TARGET_MS = Target(300)
TARGET_PERCENT = Target(1)

WATCH = """
const shown = async (count) => {
  await new Promise((done) => {
    const look = () => {
      if (document.getElementsByClassName("card").length < count) return;
      watch.disconnect();
      done();
    };
    const watch = new MutationObserver(look);
    watch.observe(document, { subtree: true, childList: true });
  });
  // In the next frame they are drawn; what is told then comes after it.
  await new Promise((done) => requestAnimationFrame(() => {
    const after = new MessageChannel();
    after.port1.onmessage = done;
    after.port2.postMessage(null);
  }));
  return performance.now();
};
window.shown = Promise.all([shown(1), shown(COUNT)]).then((devices) =>
  [performance.getEntriesByName("first-contentful-paint")[0].startTime, ...devices]);
"""
"""Runs before all that a document has, and tells at which time since the navigation its first text, its first device
and all devices were drawn."""

SHOWN = "window.shown.then(arguments[arguments.length - 1])"


def measurements(effort: Effort) -> list[Measurement]:
    """One."""
    return [Measurement("the page of a large cluster", partial(measure, effort.page_runs, effort.page_idle_s))]


def measure(runs: int, idle_s: float, bench: Bench) -> list[Row]:
    """Each run has a command of its own, so that nobody has asked it for its picture before."""
    folder = bench.folder / "page"
    folder.mkdir(exist_ok=True)
    try:
        shown, idle_percent = asyncio.run(_measure(folder, runs, idle_s))
    except NodeError as error:
        raise Unavailable(f"no browser: {error}") from error
    text, first, whole = zip(*shown, strict=True)
    settings = {"GPUs": NODES * GPUS, "allocations": NODES * GPUS * ON_A_GPU}
    return [
        Row(FIRST, "ms", first, settings, target=TARGET_MS),
        Row("until the page shows its first text", "ms", text, settings),
        Row("until the page shows all devices", "ms", whole, settings),
        Row("the page's command while nobody follows", "% of a core", [idle_percent], settings, target=TARGET_PERCENT),
    ]


async def _measure(folder: Path, runs: int, idle_s: float) -> tuple[list[list[float]], float]:
    """Of each run the milliseconds to the first text, the first device, all devices; and the idle command's part of a
    core."""
    server = ApiServer([], [taken(f"node-{number:03d}") for number in range(NODES)])
    serving, authority = api_tls(folder)
    async with server.running(serving) as api_url:
        kubeconfig = write_kubeconfig(folder, api_url, authority)
        shown = []
        with chromium(folder / "profile") as browser:
            source = WATCH.replace("COUNT", str(NODES * GPUS))
            browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": source})
            for _ in range(runs):
                async with _page(folder, kubeconfig) as (url, _):
                    shown.append(await asyncio.to_thread(_shown, browser, url))
        async with _page(folder, kubeconfig) as (_, pid):
            before_s = cpu_seconds(pid)
            await asyncio.sleep(idle_s)
            return shown, 100 * (cpu_seconds(pid) - before_s) / idle_s


@asynccontextmanager
async def _page(folder: Path, kubeconfig: Path) -> AsyncIterator[tuple[str, int]]:
    """The page's URL and the process that serves it, while it does. Raises Unavailable."""
    words = ("top", "--web", "--cluster", f"--kubeconfig={kubeconfig}", "--listen=127.0.0.1:0")
    async with command(words, folder / "top.log", "http://") as (said, pid):
        yield said.partition(": ")[2].split()[0], pid


def _shown(browser: Browser, url: str) -> list[float]:
    browser.open("about:blank")
    browser.open(url)
    told: list[float] = browser.driver.execute_async_script(SHOWN)
    return told


def taken(name: str) -> Json:
    """The AcceleratorNode of a node whose GPUs are given out."""
    pods: list[Pod] = []
    for device in accelerators(name, 1, ())["status"]["devices"]:
        for _ in range(ON_A_GPU):
            pod = Pod(f"{name}-{len(pods)}", 50, 0)
            pod.assignment = json.dumps({"main": [device["id"]]})
            pods.append(pod)
    return accelerators(name, 1, pods)
