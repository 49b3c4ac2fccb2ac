"""A connection to a cluster: Spark Connect, or Sail in this process.

Everything is asked for in Connect's DataFrames, so that any server will do. What runs there are
jobs of ours; their modules travel as an artifact of the connection, or with every job where a
server takes none. Keys of coins travel as another artifact, sealed, and what opens them with the
job: neither alone is worth anything to who finds it.
"""

from __future__ import annotations

import atexit
import hashlib
import importlib
import io
import ipaddress
import json
import os
import re
import socket
import ssl
import sys
import tempfile
import threading
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.request import proxy_bypass

import pyarrow as pa

from voile.engines.spark import without_secrets
from voile.engines.spark.by_value import bringing, brought
from voile.engines.spark.vault import (
    DELETED,
    HELD,
    ArtifactVault,
    Deletion,
    HeldVault,
    Vault,
)
from voile.errors import TableError, UsageError, VoileError
from voile.noise.subkeys import Subkeys

P = ParamSpec("P")
T = TypeVar("T")
Frame = Any
"""One of Connect's data frames."""
Batches = Iterator[pa.RecordBatch]

LOCAL = "local"
"""The address of Sail in this process."""
HOST = r"(?P<host>\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)"
ADDRESS = re.compile(rf"sc://{HOST}(:(?P<port>\d+))?(/(?P<more>(;[\w.-]+=[^;=?#@%\s]*)*;?))?")
"""Nothing that Spark's client could read in another way than we do."""
PORT = 15002
PORTS = range(1, 2**16)
NAMED = (
    "name a table of the cluster's catalogue, or a path that its executors read (a folder: NAME/)"
)
PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""Variables of the environment by which gRPC knows a proxy."""
QUOTED = f"{NAMED}; quote other characters than letters, digits and _: '`my-db`.people'"
REACHED_IN = 10.0
"""Seconds for a server to take a connection, and to say what it speaks."""
FRAME_HEAD, SETTINGS = 9, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])
"""What a client of HTTP/2 begins with; the first frame of a server's answer is its settings."""
NEEDED = ("numpy", "pyarrow", "cryptography")
"""Packages of the executors."""
SAME_PYTHON = "use the same Python on both sides (PYSPARK_PYTHON on the executors)"
CARRIED = (
    "__init__.py", "arrays.py", "arrow.py", "compiled.py", "errors.py", "files.py", "formulas.py",
    "storage.py", "system", "units.py", "progress.py", "client", "engines", "estimate",
    "kinds/__init__.py", "kinds/parquet.py", "kinds/parts.py", "kinds/footers.py",
    "kinds/looks.py", "kinds/plausibility.py", "kinds/views",
    "kinds/perturbed", "kinds/marginals", "learning", "noise", "options", "privacy",
    "register/__init__.py", "register/places.py", "register/hashes.py", "register/gathering.py",
    "schema",
)  # fmt: skip
"""Our modules that jobs are made of, and what these import."""
USUAL_TASKS = 200
"""Where the server does not say: Databricks says auto."""
MOST_TASKS = 1000
"""Tasks that Sail is given at once."""
HERE_ALONE = re.compile(r"dataset:|(postgres(ql)?|mysql|duckdb|sqlite)://")
"""What Voile reads without a cluster, and none with it."""
DRIVERS = {
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "mariadb": "org.mariadb.jdbc.Driver",
    "oracle": "oracle.jdbc.OracleDriver",
    "sqlserver": "com.microsoft.sqlserver.jdbc.SQLServerDriver",
}
"""Classes of JDBC drivers: Java finds none by itself in a jar that was given to Spark."""
TASKS = 4
"""Tasks that ask executors what they have."""
DELETED_BY = 2**20
"""Numbers that are dealt out to as many tasks as the cluster has cores."""


@dataclass(frozen=True)
class ClusterAddress:
    """Where a server is, and whether the way there is encrypted."""

    text: str = field(repr=False)
    host: str = ""
    port: int = 0
    encrypted: bool = False

    @classmethod
    def read(cls, text: str) -> ClusterAddress:
        """`local`, or sc://HOST:PORT/;option=value;…"""
        if text == LOCAL:
            return cls(text)
        found = ADDRESS.fullmatch(text)
        if found is None or int(found["port"] or PORT) not in PORTS:
            raise UsageError(
                f"{hidden(text)!r} is no address of a Spark Connect server",
                hint='use local, or sc://HOST:PORT, as in "sc://cluster:15002/;use_ssl=true"',
            )
        options = dict(
            part.partition("=")[::2] for part in (found["more"] or "").split(";") if part
        )
        encrypted = options.get("use_ssl", "").lower() == "true"
        host = found["host"].strip("[]")
        return cls(text, host, int(found["port"] or PORT), encrypted)

    @property
    def has_token(self) -> bool:
        """Whether Spark's client will send a token, which it does over TLS alone."""
        return ";token=" in self.text or "SPARK_CONNECT_AUTHENTICATE_TOKEN" in os.environ

    @property
    def is_local(self) -> bool:
        """Whether Sail is started in this process."""
        return self.text == LOCAL

    @property
    def on_loopback(self) -> bool:
        """Whether what is sent never leaves this machine."""
        if self.is_local or self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return self.text if self.is_local else f"sc://{host}:{self.port}"

    def check_private(self) -> None:
        """Refuse a way on which private rows could be read by others."""
        if self.on_loopback or self.encrypted:
            return
        raise UsageError(
            f"private rows would go unencrypted to {self}",
            hint=f'encrypt the connection: "{self}/;use_ssl=true"',
        )

    @property
    def by_proxy(self) -> bool:
        """Whether Spark's client goes there by a proxy: then no other way need lead there."""
        named = any(os.environ.get(name) for name in PROXIES)
        return named and not self.on_loopback and not proxy_bypass(self.host)

    def check_reached(self) -> None:
        """Refuse a server that does not answer; Spark's own client would try for ten minutes."""
        if self.by_proxy:
            return
        try:
            way = socket.create_connection((self.host, self.port), REACHED_IN)
        except OSError as error:
            raise UsageError(
                f"no Spark Connect server answers at {self}: {error.strerror or error}",
                hint="start one with sbin/start-connect-server.sh, or use local, which starts Sail",
            ) from None
        with way:
            if self.encrypted or (self.has_token and self.host != "localhost"):
                self._check_tls(way)
            else:
                self._check_speaks(way)

    def _check_speaks(self, way: socket.socket) -> None:
        """Refuse what is no server of HTTP/2, on which Spark Connect is: its client would wait."""
        frame = b""
        try:
            way.sendall(PREFACE)
            while len(frame) < FRAME_HEAD and (more := way.recv(FRAME_HEAD - len(frame))):
                frame += more
        except OSError:
            frame = b""
        if len(frame) < FRAME_HEAD or frame[3] != SETTINGS:
            raise UsageError(
                f"something answers at {self}, but not as Spark Connect without TLS does",
                hint="give the port of Spark Connect, which is 15002 unless it was set; "
                f"if it takes TLS there, write {self}/;use_ssl=true",
            )

    def _check_tls(self, way: socket.socket) -> None:
        try:
            spoken_tls().wrap_socket(way, server_hostname=self.host).close()
        except OSError as error:
            raise UsageError(
                f"the server at {self} does not answer with TLS, which use_ssl=true and tokens "
                f"ask for: {type(error).__name__}",
                hint="give the port on which it, or the proxy before it, takes TLS",
            ) from None


def spoken_tls() -> ssl.SSLContext:
    """To see whether a server speaks TLS at all; whose it is, gRPC checks before it sends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


def hidden(text: str) -> str:
    """An address without what may be a token or a password."""
    if re.fullmatch(r"([\w+.-]+://)?[\w.-]*(:\d+)?", text):
        return text
    kind, slashes, _ = text.partition("://")
    return f"{kind}://…" if slashes and re.fullmatch(r"[\w+.-]+", kind) else "…"


class Cluster:
    """A session of a Spark Connect server."""

    def __init__(self, session: Any, address: ClusterAddress) -> None:
        self.session, self.address = session, address
        self._ready = False
        self._lock = threading.Lock()
        self._refuses_artifacts = address.is_local
        self._bring: Callable[[], None] | None = None
        self._spent: list[str] = []
        self._lent = False

    def __repr__(self) -> str:
        return f"Cluster({str(self.address)!r})"

    @classmethod
    def of_frame(cls, frame: Frame) -> Cluster:
        """The cluster that a data frame lies on."""
        session = frame.sparkSession
        with _LOCK:
            for known in _KNOWN.values():
                if known.session is session:
                    return known
        return cls(session, ClusterAddress.read(address_of(session)))

    # ------------------------------------------------------------------ what it has

    def frame(self, what: str) -> Frame:
        """A table of the catalogue, or files, as the cluster reads them."""
        if HERE_ALONE.match(what):
            raise UsageError(
                f"{without_secrets(what)!r} is nothing that a cluster reads",
                hint="read it without a cluster, or name a table of its catalogue, a path that its "
                "executors read, or jdbc:postgresql://HOST/DATABASE::TABLE",
            )
        kind, colon, place = what.partition(":")
        if not what.strip() or (colon and not place):
            raise UsageError(f"{what!r} names no table and no files", hint=NAMED)
        reader = self.session.read
        if colon and kind == "jdbc":
            url, _, table = what.partition("::")
            if not table:
                raise UsageError("the JDBC address names no table", hint="use jdbc:…::TABLE")
            reader = reader.format("jdbc").option("url", url).option("dbtable", table)
            if driver := DRIVERS.get(place.partition(":")[0]):
                reader = reader.option("driver", driver)
            return said(reader.load)()
        if colon and not place.startswith("//") and re.fullmatch(r"[a-z]\w+", kind):
            return self._files(kind, place)
        ending = Path(what).suffix.lower()
        if "/" in what or "\\" in what or (ending in FORMATS and not self._lists(what)):
            return self._files(FORMATS.get(ending, "parquet"), what)
        return said(self.session.table)(what)

    def _lists(self, name: str) -> bool:
        """Whether the catalogue has a table of this name: warehouse.json may be one."""
        try:
            return bool(said(self.session.catalog.tableExists)(name))
        except TableError:  # such as a name of more parts than its tables have
            return False

    def _files(self, kind: str, place: str) -> Frame:
        reader = self.session.read.format(kind)
        if kind == "csv":
            reader = reader.option("header", "true").option("inferSchema", "true")
        return said(reader.load)(place)

    # ------------------------------------------------------------------ running jobs there

    def run(self, frame: Frame, job: Callable[[Batches], Batches], output: pa.Schema) -> Frame:
        """What a job makes of a frame, partition by partition; it is done when that is read."""
        self.prepare()
        function = carried(job) if self._bring is None else brought(job, self._bring)
        return said(frame.mapInArrow)(function, ddl(output))

    def rows(self, frame: Frame) -> Iterator[pa.Table]:
        """The rows of a frame, some at a time, in the order of its partitions."""
        client = self.session.client
        with telling():
            for part in client.to_table_as_iterator(frame._plan.to_proto(client), {}):
                if isinstance(part, pa.Table):
                    yield part

    def table(self, frame: Frame) -> pa.Table:
        """All rows of a small frame."""
        return said(frame.toArrow)()

    @property
    def keeps_order(self) -> bool:
        """Whether rows that were sorted within partitions reach a job in that order."""
        return not self.address.is_local

    def partitions(self, parts: int) -> int:
        """Into how many partitions so many parts are dealt.

        Where a task sorts its rows itself it should have few of them.
        """
        if not self.keeps_order:
            return max(1, min(parts, MOST_TASKS))
        usual = said(self.session.conf.get)("spark.sql.shuffle.partitions")
        return max(1, min(parts, int(usual) if str(usual).isdigit() else USUAL_TASKS))

    @property
    def takes_secrets(self) -> bool:
        """Whether keys can be brought to where the rows are."""
        self.prepare()
        return self.address.is_local or not self._refuses_artifacts

    @contextmanager
    def coins(self, keys: Subkeys) -> Iterator[Vault]:
        """Keys for the jobs of a release, there while it is made."""
        vault = self.lend(keys)
        try:
            yield vault
        finally:
            self.spent(vault)
            self.delete_spent()

    def lend(self, keys: Subkeys) -> Vault:
        """Keys for jobs, there until they are `spent`."""
        if self.address.is_local:
            name = f"voile-{os.urandom(16).hex()}"
            HELD[name] = keys
            return HeldVault(name)
        self.prepare()
        if self._refuses_artifacts:
            raise UsageError(
                f"the server at {self.address} takes no artifacts, by which keys of random "
                "numbers travel",
                hint="use local, which starts Sail in this process, or a server of Apache Spark 4; "
                "marginals, counts and classes need no keys there",
            )
        sealed, opener = keys.sealed()
        name = f"voile-{hashlib.sha256(sealed).hexdigest()[:32]}.bin"
        self._lent = True
        self._add(name, sealed, file=True)
        return ArtifactVault(name, opener)

    def spent(self, vault: Vault) -> None:
        """The keys are not needed any more. It asks no server, and a finalizer may call it."""
        if isinstance(vault, HeldVault):
            HELD.pop(vault.name, None)
        else:
            self._spent.append(vault.name)

    def delete_spent(self) -> None:
        """Delete the files of keys that are not needed any more from the executors.

        What was made does not depend on it: keys are sealed, and an executor that is lost or busy
        keeps its copies until Spark deletes them.
        """
        names, self._spent = tuple(self._spent), []
        if not names:
            return
        with suppress(VoileError):
            self.address.check_reached()  # Spark's client would wait for minutes
            numbers = self.session.range(0, DELETED_BY)  # dealt out to all cores
            self.table(self.run(numbers, Deletion(names), DELETED))

    def end(self) -> None:
        """End a session that had keys: with it the server deletes its copies of artifacts."""
        if not self._lent or self.session.is_stopped:
            return
        with suppress(VoileError):
            self.address.check_reached()
            self.session.stop()

    @property
    def is_alive(self) -> bool:
        """Whether the server still knows the session: it forgets one that rests for an hour."""
        if self.session.is_stopped:
            return False
        try:
            if not self.address.is_local:
                self.address.check_reached()
            said(self.session.conf.get)("spark.sql.session.timeZone")
        except VoileError:
            return False
        return True

    # ------------------------------------------------------------------ before anything runs

    def prepare(self) -> None:
        """Send our modules, once, and see that executors have what jobs need."""
        with self._lock:
            if self._ready:
                return
            if not self.address.is_local:
                self._carry_modules()
            self._check_executors()
            self._ready = True

    def _carry_modules(self) -> None:
        content = packed_modules()
        name = f"voile-{hashlib.sha256(content).hexdigest()[:16]}.zip"
        try:
            self._add(name, content, pyfile=True)
        except VoileError:
            # Sail takes none: they go along with every job.
            self._refuses_artifacts = True
            self._bring = bringing(content)

    def _add(self, name: str, content: bytes, **how: bool) -> None:
        with tempfile.TemporaryDirectory(prefix="voile-") as folder:
            path = Path(folder) / name
            path.write_bytes(content)
            path.chmod(0o600)
            said(self.session.addArtifact)(str(path), **how)

    def _check_executors(self) -> None:
        """Refuse executors that lack what jobs need, before any row is read."""
        output = pa.schema([pa.field("found", pa.string())])
        ask = probe(NEEDED, self._bring)
        frame = self.session.range(0, TASKS, 1, TASKS).mapInArrow(ask, ddl(output))
        for text in self.table(frame).column("found").to_pylist():
            found = json.loads(text)
            if found["missing"]:
                raise UsageError(
                    f"executor {found['host']} lacks {', '.join(found['missing'])}",
                    hint=f"its Python, {found['python']}, needs {', '.join(NEEDED)}",
                )
            if found["version"] != list(sys.version_info[:2]):
                there = ".".join(map(str, found["version"]))
                raise UsageError(
                    f"executor {found['host']} has Python {there}, and jobs are made by "
                    f"{sys.version_info[0]}.{sys.version_info[1]}",
                    hint=SAME_PYTHON,
                )
            if found["refused"]:
                raise UsageError(
                    f"the server at {self.address} does not take our modules: {found['refused']}",
                    hint="restart it, or install this version of Voile there",
                )


def probe(names: Sequence[str], bring: Callable[[], None] | None) -> Callable[[Any], Any]:
    """Asks an executor what it has, and whether it takes modules that are brought."""

    def ask(batches: Any) -> Any:
        # It stands alone: it runs before any module of ours is known to be there.
        import importlib.util  # noqa: PLC0415
        import json  # noqa: PLC0415
        import socket  # noqa: PLC0415
        import sys  # noqa: PLC0415

        import pyarrow  # noqa: PLC0415  (Spark itself needs it there)

        for _ in batches:
            pass
        missing = [name for name in names if importlib.util.find_spec(name) is None]
        refused = ""
        if bring is not None and not missing:
            try:
                bring()
            except RuntimeError as error:
                refused = str(error)
        found = {"host": socket.gethostname(), "python": sys.executable, "missing": missing,
                 "version": list(sys.version_info[:2]), "refused": refused}  # fmt: skip
        texts = pyarrow.array([json.dumps(found)])
        yield pyarrow.RecordBatch.from_arrays([texts], ["found"])

    return ask


# ---------------------------------------------------------------------- what is carried there


def carried(job: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    """A job as a function, which Spark wants."""

    def run(batches: Batches) -> Batches:
        return job(batches)

    return run


def packed_modules() -> bytes:
    """Our modules that jobs are made of, as a ZIP file that is the same each time."""
    home = Path(__file__).parents[2]
    files = [
        file
        for name in CARRIED
        for file in (sorted((home / name).rglob("*.py")) if (home / name).is_dir()
                     else [home / name])
    ]  # fmt: skip
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as packed:
        for file in files:
            name = f"voile/{file.relative_to(home).as_posix()}"
            packed.writestr(zipfile.ZipInfo(name), file.read_bytes(), zipfile.ZIP_DEFLATED)
    return out.getvalue()


def ddl(schema: pa.Schema) -> str:
    """The columns of a result, as Spark writes them."""
    words = {pa.int64(): "bigint", pa.string(): "string", pa.binary(): "binary",
             pa.float64(): "double", pa.bool_(): "boolean", pa.date32(): "date"}  # fmt: skip
    return ", ".join(f"`{field.name.replace('`', '``')}` {words[field.type]}" for field in schema)


FORMATS = {".parquet": "parquet", ".csv": "csv", ".json": "json", ".orc": "orc"}


# ---------------------------------------------------------------------- connecting


_KNOWN: dict[str, Cluster] = {}
_LOCK = threading.RLock()
_SERVERS: list[Any] = []
"""Sail ends with the process, or when nobody holds it."""


def cluster_at(text: str, *, private: bool = True) -> Cluster:
    """The cluster at an address; `private` if rows of people are read there."""
    address = ClusterAddress.read(text)
    if private:
        address.check_private()
    with _LOCK:
        if (known := _KNOWN.get(text)) is not None and known.is_alive:
            return known
        _KNOWN[text] = found = connected(address)
        atexit.register(found.end)
        return found


def connected(address: ClusterAddress) -> Cluster:
    """A new session."""
    needed("pyspark.sql.connect", "pyspark-client")
    with warnings.catch_warnings(), as_a_file():
        warnings.simplefilter("ignore")  # of pandas that is newer than Spark knows
        importlib.import_module("pyspark.sql.connect.session")

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if address.is_local:
            where = started_sail()
        else:
            address.check_reached()
            where = address.text
        session = new_session(where, address)
        said(lambda: session.version)()
    return Cluster(session, address)


def new_session(where: str, address: ClusterAddress) -> Any:
    """A session; what goes to this machine goes by no proxy."""
    from pyspark.errors import PySparkException  # noqa: PLC0415
    from pyspark.sql.connect.client import DefaultChannelBuilder  # noqa: PLC0415
    from pyspark.sql.connect.session import SparkSession  # noqa: PLC0415

    options = [("grpc.enable_http_proxy", 0)] if address.on_loopback else []
    try:
        builder = DefaultChannelBuilder(where, channelOptions=options)
        return SparkSession.builder.channelBuilder(builder).create()
    except PySparkException:  # whose words may have a token in them
        raise UsageError(
            f"Spark's client does not take the options of the address {address}",
            hint="write them as ;name=value, as in sc://HOST:PORT/;use_ssl=true;token=…",
        ) from None


@contextmanager
def as_a_file() -> Iterator[None]:
    """Spark takes a program without a file, as `python -c` runs one, for its own doctests."""
    main = sys.modules["__main__"]
    if hasattr(main, "__file__"):
        yield
        return
    main.__file__ = "voile"
    try:
        yield
    finally:
        del main.__file__


def started_sail() -> str:
    """A server of Sail's in this process, on a port of its own."""
    needed("pysail", "pysail")
    os.environ.setdefault("RUST_LOG", "error")
    from pysail.spark import SparkConnectServer  # noqa: PLC0415

    server = SparkConnectServer(ip="127.0.0.1", port=0)
    server.start(background=True)
    _SERVERS.append(server)
    host, port = server.listening_address
    return f"sc://{host}:{port}"


def needed(module: str, package: str) -> None:
    """Refuse to go on without a package."""
    try:
        importlib.import_module(module.partition(".")[0])
    except ImportError:
        raise UsageError(
            f"a cluster needs the package {package}, which is not installed",
            hint="pip install 'voile[spark]'" + (" pysail" if package == "pysail" else ""),
        ) from None


def address_of(session: Any) -> str:
    """Where a session of the caller's goes to; what is not known is taken for unencrypted."""
    builder = session.client._builder
    place = getattr(builder, "endpoint", "") or getattr(builder, "host", "") or "unknown"
    encrypted = getattr(builder, "use_ssl", False) is True
    found = f"sc://{place}/;use_ssl={str(encrypted).lower()}"
    return found if ADDRESS.fullmatch(found) else "sc://unknown"  # no host, such as a socket


# ---------------------------------------------------------------------- errors


LACKING = re.compile(r"No module named '(?!voile\b)(\w+)|PACKAGE_NOT_INSTALLED\] (\w+)")
HELP = {
    "maxResultSize": "set spark.driver.maxResultSize higher on the cluster, or 0 for no limit",
    "PYTHON_VERSION_MISMATCH": SAME_PYTHON,
    "TABLE_OR_VIEW_NOT_FOUND|PATH_NOT_FOUND": NAMED,
    "PARSE_SYNTAX_ERROR|INVALID_IDENTIFIER|invalid argument: found ": QUOTED,
    "No data source found|DATA_SOURCE_NOT_FOUND":
        "name a format that this server has; others need their jars on the cluster",
    "No suitable driver|ClassNotFoundException":
        "put the JDBC driver of that database among the jars of the cluster (spark.jars)",
}  # fmt: skip
"""What to do, by what Apache Spark and Sail say."""
TRACEBACK = "Traceback (most recent call last)"
LINES = re.compile(r"\n\s+at |\nJVM stacktrace|\n\n")


@contextmanager
def telling() -> Iterator[None]:
    """Turn an error of Spark's into one of ours."""
    import grpc  # noqa: PLC0415  (only where a cluster is used)
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (PySparkException, grpc.RpcError) as error:
        text = without_secrets(LINES.split(str(error).strip(), maxsplit=1)[0])
        raise TableError(
            f"the cluster refused: {first_words(text)[:500]}", hint=what_helps(text)
        ) from None


def first_words(text: str) -> str:
    """The first line of an error; of one that a job raised, the error and not where it was."""
    lines = text.splitlines() or ["no reason was given"]
    if TRACEBACK not in text:
        return lines[0]
    raised = (line for line in reversed(lines) if re.match(r"[\w.]+: ", line))
    return next(raised, lines[0])


def what_helps(text: str) -> str:
    """What to do about an error of the cluster's, where that is known."""
    if missing := LACKING.search(text):
        return f"install {missing[1] or missing[2]} in the Python of the executors"
    return next((hint for signs, hint in HELP.items() if re.search(signs, text)), "")


def said(function: Callable[P, T]) -> Callable[P, T]:
    """The same function with errors in our words."""

    def call(*arguments: P.args, **named: P.kwargs) -> T:
        with telling():
            return function(*arguments, **named)

    return call
