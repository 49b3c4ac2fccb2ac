"""Who may come in: the token, our own host name, and no request of another site."""

from __future__ import annotations

import hashlib
import http.client
import re
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from tests.studio.conftest import RunningStudio


class Knocking:
    """Requests without a browser, with any headers."""

    def __init__(self, running: RunningStudio) -> None:
        self.host = running.base.removeprefix("http://")
        self.link = running.url.removeprefix(running.base)
        self.cookie = self.get(self.link)[1]["set-cookie"].partition(";")[0]

    def send(
        self, method: str, path: str, body: str | None = None, **headers: str
    ) -> tuple[int, dict[str, str], str]:
        made = http.client.HTTPConnection(self.host, timeout=30)
        made.putrequest(method, path, skip_host=True)
        sent = {"Host": self.host, **{k.replace("_", "-"): v for k, v in headers.items()}}
        if body is not None:
            sent |= {"Content-Type": "application/x-www-form-urlencoded",
                     "Content-Length": str(len(body))}  # fmt: skip
        for name, value in sent.items():
            made.putheader(name, value)
        made.endheaders(None if body is None else body.encode())
        found = made.getresponse()
        text = found.read().decode()
        made.close()
        return found.status, {k.lower(): v for k, v in found.getheaders()}, text

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
        return self.send("GET", path, **headers)


@pytest.fixture
def door(studio: Callable[..., RunningStudio]) -> Knocking:
    return Knocking(studio())


PATHS = ["/", "/static/studio.css", "/p/adult/table", "/jobs/1", "/servers", "/r/x", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
def test_without_the_token_every_address_answers_403(path: str, door: Knocking) -> None:
    assert door.get(path)[0] == 403
    assert door.get(f"{path}?token=wrong")[0] == 403
    assert door.get(path, Cookie=door.cookie[:-1])[0] == 403


def test_the_link_and_then_the_cookie_open_it(door: Knocking) -> None:
    status, headers, text = door.get(door.link)
    assert status == 200 and "Voile Studio" in text
    assert "HttpOnly" in headers["set-cookie"] and "SameSite=Strict" in headers["set-cookie"]
    assert door.get("/", Cookie=door.cookie)[0] == 200
    assert "script-src 'self'" in headers["content-security-policy"]


def test_another_host_name_is_refused(door: Knocking) -> None:
    """A page of another site that made its own name point here has the browser's cookies not,
    but must not be answered in any case."""
    assert door.get("/", Cookie=door.cookie, Host="attacker.example")[0] == 403
    assert door.get(door.link, Host="attacker.example")[0] == 403
    port = door.host.rpartition(":")[2]
    assert door.get(door.link, Host=f"localhost:{port}")[0] == 200


def test_a_request_of_another_site_changes_nothing(door: Knocking) -> None:
    form = "path=dataset:adult"
    own: dict[str, Any] = {"Cookie": door.cookie, "Origin": f"http://{door.host}"}
    assert door.send("POST", "/start/open", form, **own)[0] == 403  # as a plain form would
    foreign = {**own, "Origin": "http://attacker.example", "HX_Request": "true"}
    assert door.send("POST", "/start/open", form, **foreign)[0] == 403
    no_origin = {"Cookie": door.cookie, "HX_Request": "true"}
    assert door.send("POST", "/start/open", form, **no_origin)[0] == 403
    link = door.link.replace("/?", "/start/open?")
    assert door.send("POST", link, form, HX_Request="true", Origin=own["Origin"])[0] == 403
    status, headers, _ = door.send("POST", "/start/open", form, HX_Request="true", **own)
    assert status == 200 and headers["hx-redirect"] == "/p/adult"


@pytest.mark.parametrize(
    "path",
    ["/static/../project.py", "/static/%2e%2e/project.py", "/static/vendored/../../app.py",
     "/p/..%2f..%2fetc/table", "/r/%2e%2e/x"],
)  # fmt: skip
def test_no_path_leads_outside(path: str, door: Knocking) -> None:
    status, _, text = door.get(path, Cookie=door.cookie)
    assert status == 404 and "import" not in text


def test_names_of_projects_and_releases_are_names(door: Knocking) -> None:
    own: dict[str, Any] = {"Cookie": door.cookie, "Origin": f"http://{door.host}",
                           "HX_Request": "true"}  # fmt: skip
    for action, name in (("project", "../x.voile-project"), ("release", "/etc/x.voile"),
                         ("project", "x.csv")):  # fmt: skip
        status, _, text = door.send("POST", f"/start/{action}", f"name={name}", **own)
        assert status == 422 and "not in this folder" in text


VENDORED = Path(str(files("voile.studio"))) / "static" / "vendored"


def test_libraries_are_those_that_are_listed() -> None:
    """A file that was changed, or has no licence beside it, is noticed."""
    listed = dict(re.findall(r"^\| `(\S+)` .* `(\w{64})` \|$", read("README.md"), re.MULTILINE))
    assert set(listed) == {file.name for file in VENDORED.iterdir() if file.name.endswith(".js")}
    studio = VENDORED.parent.parent
    used = (studio / "templates" / "base.html").read_text()
    used += (studio / "static" / "studio.js").read_text()
    for name, digest in listed.items():
        assert hashlib.sha256((VENDORED / name).read_bytes()).hexdigest() == digest
        package = re.sub(r"-[\d.]+\.min\.js$", "", name)
        assert "BSD" in read(f"{package}.LICENSE") or "opyright" in read(f"{package}.LICENSE")
        assert name.removesuffix(".min.js") in used


def read(name: str) -> str:
    return (VENDORED / name).read_text(encoding="utf-8")
