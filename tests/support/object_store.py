"""An object store in this process that speaks enough of S3 for Arrow: no folders, only keys."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

NAMESPACE = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'


@dataclass
class ObjectStore:
    """What is kept, by bucket and key, and what was asked."""

    address: str = ""
    objects: dict[str, bytes] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def url(self, place: str) -> str:
        """The URL of a folder, as a reader of S3 with another endpoint has it."""
        return f"s3a://{place}?endpoint_override=http://{self.address}&region=us-east-1"

    def names(self) -> list[str]:
        """All keys but those that stand for folders."""
        return sorted(key for key in self.objects if not key.endswith("/"))


@contextmanager
def object_store() -> Iterator[ObjectStore]:
    """A store that is there for a while."""
    store = ObjectStore()

    class Handler(Requests):
        kept = store

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        store.address = f"127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield store
        finally:
            server.shutdown()
            thread.join()


class Requests(BaseHTTPRequestHandler):
    """Requests of S3's REST interface; nobody's signature is looked at."""

    protocol_version = "HTTP/1.1"
    kept: ObjectStore

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is printed."""

    def parsed(self) -> tuple[str, dict[str, str]]:
        parts = urlsplit(self.path)
        found = {k: v[-1] for k, v in parse_qs(parts.query, keep_blank_values=True).items()}
        key = unquote(parts.path).lstrip("/")
        self.kept.asked.append(f"{self.command} {key}")
        return key, found

    def body(self) -> bytes:
        content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if (self.headers.get("Transfer-Encoding") or "") == "chunked":
            while size := int(self.rfile.readline(), 16):
                content += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        if "aws-chunked" not in (self.headers.get("Content-Encoding") or ""):
            return content
        found, rest = b"", content
        while rest:
            head, _, rest = rest.partition(b"\r\n")
            size = int(head.partition(b";")[0], 16)
            found, rest = found + rest[:size], rest[size + 2 :]
            if not size:
                break
        return found

    def answer(self, status: int = 200, content: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def missing(self) -> None:
        self.answer(404, f"<Error {NAMESPACE}><Code>NoSuchKey</Code></Error>".encode())

    def do_HEAD(self) -> None:
        key, _ = self.parsed()
        if "/" not in key.rstrip("/"):
            self.answer()
        elif key in self.kept.objects:
            content = self.kept.objects[key]
            self.answer(Content_Length=str(len(content)), ETag='"x"',
                        Last_Modified="Mon, 01 Jan 2024 00:00:00 GMT")  # fmt: skip
        else:
            self.missing()

    def do_GET(self) -> None:
        key, query = self.parsed()
        if "list-type" in query:
            return self.listing(key.rstrip("/"), query)
        if key not in self.kept.objects:
            return self.missing()
        content = self.kept.objects[key]
        begin, end = 0, len(content) - 1
        if wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last or end), end)
            return self.answer(206, content[begin : end + 1],
                               Content_Range=f"bytes {begin}-{end}/{len(content)}")  # fmt: skip
        return self.answer(200, content)

    def listing(self, bucket: str, query: dict[str, str]) -> None:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        keys, folders = [], set()
        for key in sorted(self.kept.objects):
            inside, _, name = key.partition("/")
            if inside != bucket or not name.startswith(prefix):
                continue
            rest = name[len(prefix) :]
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
            else:
                keys.append((name, len(self.kept.objects[key])))
        listed = "".join(
            f"<Contents><Key>{escape(name)}</Key><Size>{size}</Size><ETag>x</ETag>"
            "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            for name, size in keys
        )
        within = "".join(
            f"<CommonPrefixes><Prefix>{escape(one)}</Prefix></CommonPrefixes>" for one in folders
        )
        text = (
            f"<ListBucketResult {NAMESPACE}><Name>{bucket}</Name><IsTruncated>false</IsTruncated>"
            f"<KeyCount>{len(keys) + len(folders)}</KeyCount>{listed}{within}</ListBucketResult>"
        )
        self.answer(200, text.encode(), Content_Type="application/xml")

    def do_PUT(self) -> None:
        key, query = self.parsed()
        content = self.body()
        if "partNumber" in query:
            self.kept.uploads[query["uploadId"]][int(query["partNumber"])] = content
        else:
            self.kept.objects[key] = content
        self.answer(ETag='"x"')

    def do_POST(self) -> None:
        key, query = self.parsed()
        self.body()
        if "uploads" in query:
            number = str(len(self.kept.uploads) + 1)
            self.kept.uploads[number] = {}
            text = f"<InitiateMultipartUploadResult {NAMESPACE}><UploadId>{number}</UploadId>"
            self.answer(200, f"{text}</InitiateMultipartUploadResult>".encode())
            return
        parts = self.kept.uploads.pop(query["uploadId"])
        self.kept.objects[key] = b"".join(parts[i] for i in sorted(parts))
        text = f"<CompleteMultipartUploadResult {NAMESPACE}><ETag>x</ETag>"
        self.answer(200, f"{text}</CompleteMultipartUploadResult>".encode())

    def do_DELETE(self) -> None:
        key, query = self.parsed()
        if "uploadId" in query:
            self.kept.uploads.pop(query["uploadId"], None)
        else:
            self.kept.objects.pop(key, None)
        self.answer(204)
