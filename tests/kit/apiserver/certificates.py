"""The cluster's certificates and the kubeconfig files that carry them."""

import base64
from pathlib import Path

from tests.kit.apiserver.kubeconfig import kubeconfig
from tests.kit.processes.command import run
from tests.kit.programs.packages import NODE_PACKAGES, install, missing

DAYS = "3650"


class Authority:
    """A certificate authority in `folder`; everything it issues lies there too, and is kept once made. Raises NodeError
    where there is no openssl."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.folder = folder
        self.certificate = folder / "ca.crt"
        if not self.certificate.exists():
            install(missing({"openssl": NODE_PACKAGES["openssl"]}))
            self._make("ca", "/CN=edgeshare-test-ca", ["basicConstraints=critical,CA:TRUE"], signed=False)

    def issue(self, name: str, user: str, *, group: str = "", hosts: tuple[str, ...] = ()) -> tuple[Path, Path]:
        """Return the certificate and the key of `user`, in `group`, who serves at `hosts` (IP:… or DNS:…)."""
        certificate = self.folder / f"{name}.crt"
        if not certificate.exists():
            extensions = ["extendedKeyUsage=clientAuth,serverAuth"]
            if hosts:
                extensions.append(f"subjectAltName={','.join(hosts)}")
            organisation = f"/O={group}" if group else ""
            self._make(name, f"{organisation}/CN={user}", extensions, signed=True)
        return certificate, self.folder / f"{name}.key"

    def signing_key(self, name: str) -> tuple[Path, Path]:
        """Return the public and the private half of a key for tokens."""
        public, private = self.folder / f"{name}.pub", self.folder / f"{name}.key"
        if not public.exists():
            run(["openssl", "genrsa", "-out", private, "2048"])
            run(["openssl", "rsa", "-in", private, "-pubout", "-out", public])
        return public, private

    def kubeconfig(self, path: Path, server: str, user: str, *, group: str = "") -> Path:
        """Write the kubeconfig of `user`: it needs no other file."""

        def text(file: Path) -> str:
            return base64.b64encode(file.read_bytes()).decode()

        certificate, key = self.issue(path.name, user, group=group)
        cluster = {"server": server, "certificate-authority-data": text(self.certificate)}
        return kubeconfig(path, cluster, {"client-certificate-data": text(certificate), "client-key-data": text(key)})

    def _make(self, name: str, subject: str, extensions: list[str], *, signed: bool) -> None:
        key, certificate = self.folder / f"{name}.key", self.folder / f"{name}.crt"
        command: list[str | Path] = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
        ]
        command += ["-noenc", "-days", DAYS, "-subj", subject, "-keyout", key, "-out", certificate]
        if signed:
            command += ["-CA", self.certificate, "-CAkey", self.folder / "ca.key"]
        for extension in extensions:
            command += ["-addext", extension]
        run(command)
