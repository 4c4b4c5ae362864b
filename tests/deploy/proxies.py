"""A real proxy with TLS in front of a real server, by the files below deploy/, on free ports of this machine."""

import contextlib
import datetime
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.app.serving import free_port, serving
from tests.deploy.manifests import COMPOSE, DEPLOY

NGINX = """
daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  include {folder}/server.conf;
}}
"""


@dataclass(frozen=True, kw_only=True)
class Front:
    """`store`: of the server behind; `kept`: where the proxy would keep what it gathers."""

    port: int
    authority: Path
    store: Path
    kept: Path

    @property
    def origin(self) -> str:
        return f"https://localhost:{self.port}"

    def context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))


def found(name: str) -> str | None:
    """The path of nginx or caddy; Debian keeps nginx where ordinary users do not look."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin")


@contextlib.contextmanager
def front(name: str, folder: Path) -> Iterator[Front]:
    """nginx or caddy, by `name`, in front of a server; both are ended by their process ids."""
    store, listened = folder / "store", free_port()
    with serving(store, "--host", "0.0.0.0", "--open-to-all", FORWARDED_ALLOW_IPS="127.0.0.1,::1") as address:
        behind = address.rpartition(":")[2]
        command, authority, env = (_nginx if name == "nginx" else _caddy)(folder, listened, behind)
        with (folder / "proxy.log").open("w") as log:
            process = subprocess.Popen(
                [found(name), *command], stdout=log, stderr=log, cwd=folder, env={**os.environ, **env}
            )
        made = Front(port=listened, authority=authority, store=store, kept=folder / "body")
        try:
            _until_it_answers(made, process, folder / "proxy.log")
            yield made
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def _until_it_answers(made: Front, process: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", made.port), timeout=5) as plain,
            made.context().wrap_socket(plain, server_hostname="localhost"),
        ):
            return
        time.sleep(0.1)


def _nginx(folder: Path, port: int, behind: str) -> tuple[list[str], Path, dict[str, str]]:
    certificate, key = _certificate(folder)
    text = (DEPLOY / "nginx.conf").read_text()
    for said, here in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("server_name chipledger.example", "server_name localhost"),
        ("/etc/ssl/chipledger/fullchain.pem", str(certificate)),
        ("/etc/ssl/chipledger/privkey.pem", str(key)),
        ("http://127.0.0.1:8501", f"http://127.0.0.1:{behind}"),
    ):
        assert text.count(said) == 1, said
        text = text.replace(said, here)
    (folder / "server.conf").write_text(text)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder))
    return ["-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", "stderr"], certificate, {}


def _caddy(folder: Path, port: int, behind: str) -> tuple[list[str], Path, dict[str, str]]:
    text = (COMPOSE / "Caddyfile").read_text()
    assert text.count("admin off") == 1
    others = f"admin off\n\tskip_install_trust\n\tauto_https disable_redirects\n\thttp_port {free_port()}"
    (folder / "Caddyfile").write_text(text.replace("admin off", others))
    env = {
        "XDG_DATA_HOME": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "CHIPLEDGER_SITE": f"https://localhost:{port}",
        "CHIPLEDGER_APP": f"127.0.0.1:{behind}",
    }
    authority = folder / "data/caddy/pki/authorities/local/root.crt"
    return ["run", "--config", str(folder / "Caddyfile"), "--adapter", "caddyfile"], authority, env


def _certificate(folder: Path) -> tuple[Path, Path]:
    """(certificate, key) of `localhost`, its own authority, for a day."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=90))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "certificate.pem", folder / "key.pem"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private = serialization.PrivateFormat.PKCS8
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, private, serialization.NoEncryption()))
    return certificate, secret
