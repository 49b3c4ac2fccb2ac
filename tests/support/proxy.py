"""A web server with TLS in front of one of ours, as nginx or Caddy would stand there."""

from __future__ import annotations

import datetime as dt
import http.client
import ipaddress
import ssl
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOP = frozenset(["connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade"])
"""Headers that are about one connection."""


def certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for this machine that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "localhost")])
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    chain, private = folder / "fullchain.pem", folder / "key.pem"
    chain.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return chain, private


class Forwarding(BaseHTTPRequestHandler):
    """One connection of a client: each request goes on to whoever answers to its path."""

    protocol_version = "HTTP/1.1"
    routes: Mapping[str, int]
    """The port of whoever answers to paths that begin so; the longest one counts."""
    client = "203.0.113.7"
    """Where clients are said to be."""

    def _forward(self) -> None:
        prefix = max(filter(self.path.startswith, self.routes), key=len)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kept = {name: text for name, text in self.headers.items() if name.lower() not in HOP}
        kept["X-Forwarded-For"] = self.client  # what a client says of itself is not passed on
        kept["X-Forwarded-Proto"] = "https"
        behind = http.client.HTTPConnection("127.0.0.1", self.routes[prefix], timeout=30)
        try:
            path = "/" + self.path.removeprefix(prefix).removeprefix("/")
            behind.request(self.command, path, body or None, kept)
            answer = behind.getresponse()
            content = answer.read()
        except ConnectionError:
            self.send_error(502)
            return
        finally:
            behind.close()
        self.send_response(answer.status)
        for name, text in answer.getheaders():
            if name.lower() not in HOP | {"content-length"}:
                self.send_header(name, text)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_HEAD = do_OPTIONS = _forward  # noqa: N815  (as http.server calls them)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: a log would keep addresses."""


def tls_proxy(folder: Path, port: int, routes: Mapping[str, int]) -> ThreadingHTTPServer:
    """A running proxy; `shutdown` and `server_close` end it. Its certificate is in the folder."""
    chain, private = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain, private)
    handler = type("Handler", (Forwarding,), {"routes": dict(routes)})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server
