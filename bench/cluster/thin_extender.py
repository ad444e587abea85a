"""``python -m bench.cluster.thin_extender``: the least that an extender of kube-scheduler's can do: it lets every node
pass, ranks none, and binds. What it costs is what an extender in Python costs at all."""

import json
import ssl
from collections.abc import AsyncIterator

import click
from aiohttp import ClientSession, TCPConnector, web

JSON = {"Content-Type": "application/json"}


class Thin:
    """What the extender answers."""

    def __init__(self, server: str, context: ssl.SSLContext, one: bool) -> None:
        self._server = server
        self._context = context
        self._one = one
        """Whether one node is let pass alone, which spares kube-scheduler ranking any."""

    async def filter(self, request: web.Request) -> web.Response:
        names = json.loads(await request.read())["NodeNames"]
        return web.json_response({"NodeNames": names[:1] if self._one else names})

    async def prioritize(self, request: web.Request) -> web.Response:
        names = json.loads(await request.read())["NodeNames"]
        return web.json_response([{"Host": name, "Score": 0} for name in names])

    async def bind(self, request: web.Request) -> web.Response:
        asked = json.loads(await request.read())
        namespace, name = asked["PodNamespace"], asked["PodName"]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": name, "namespace": namespace, "uid": asked["PodUID"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": asked["Node"]},
        }
        path = f"/api/v1/namespaces/{namespace}/pods/{name}/binding"
        async with self._session.post(path, data=json.dumps(binding), headers=JSON) as answer:
            said = await answer.read()
        return web.json_response({"Error": "" if answer.ok else said.decode()})

    async def run_session(self, app: web.Application) -> AsyncIterator[None]:
        """Keep a session to the API server while the server runs."""
        connector = TCPConnector(ssl=self._context, limit=0)
        async with ClientSession(self._server, connector=connector) as self._session:
            yield


@click.command()
@click.option("--address", required=True, help="host:port to serve at.")
@click.option("--certificate", required=True, help="What kube-scheduler and the API server know it by.")
@click.option("--key", required=True)
@click.option("--authority", required=True)
@click.option("--server", required=True, help="The API server's URL.")
@click.option("--plain", is_flag=True, help="Serves HTTP without TLS.")
@click.option("--one", is_flag=True, help="Lets the first node pass alone.")
def main(
    address: str,
    certificate: str,
    key: str,
    authority: str,
    server: str,
    plain: bool,
    one: bool,
) -> None:
    """Serves until it is ended."""
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority)
    serving.load_cert_chain(certificate, key)
    serving.verify_mode = ssl.CERT_REQUIRED
    asking = ssl.create_default_context(cafile=authority)
    asking.load_cert_chain(certificate, key)
    host, _, port = address.rpartition(":")
    thin = Thin(server, asking, one)
    app = web.Application(client_max_size=1 << 24)
    app.cleanup_ctx.append(thin.run_session)
    app.add_routes([web.post(f"/{verb}", getattr(thin, verb)) for verb in ("filter", "prioritize", "bind")])
    web.run_app(app, host=host, port=int(port), ssl_context=None if plain else serving, print=None, access_log=None)


if __name__ == "__main__":
    main()
