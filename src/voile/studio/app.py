"""The studio as an ASGI application: who may come in, and which screen a request is for."""

from __future__ import annotations

import filecmp
import hmac
import re
import secrets
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import RedirectResponse, Response
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from voile.errors import UsageError, VoileError
from voile.studio.pages import (
    Area,
    AreaVisit,
    Download,
    Form,
    Go,
    Reply,
    Screen,
    ScreenPage,
    Visit,
    rendered,
)
from voile.studio.screens import AREAS, SCREENS
from voile.studio.screens.start import check_contents
from voile.studio.state import Studio
from voile.web.requests import SecurityHeaders

MOST_FORM = 2**24
"""Bytes of a form: a hierarchy or a codebook may be pasted."""
LONGEST_NAME = 60
"""Characters of an uploaded file's name."""
SAFE = ("GET", "HEAD")
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}
STATIC = files("voile.studio") / "static"
SHARED = files("voile.web") / "static"
"""What servers have too, under /static/shared/."""
STATIC_NAME = re.compile(r"(vendored/|shared/)?[a-z0-9.-]+\.(js|css|svg)")


# ---------------------------------------------------------------------- the door


@dataclass
class Keys:
    """What lets a browser in: the token of this run, and links that work once."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    once: set[str] = field(default_factory=set)

    def new_link(self) -> str:
        """A token for a link that works once: others may see what a browser is started with."""
        made = secrets.token_urlsafe(32)
        self.once.add(made)
        return made

    def opens(self, given: str) -> bool:
        """Whether a link's token is valid; one that works once is used up."""
        if same(given, self.token):
            return True
        found = next((each for each in self.once if same(given, each)), None)
        self.once.discard(found or "")
        return found is not None


def same(given: str, wanted: str) -> bool:
    """Compared in constant time."""
    return hmac.compare_digest(given.encode(), wanted.encode())


class Door:
    """Lets in who brings the token, on our own host name, and no request of another site."""

    def __init__(self, app: ASGIApp, keys: Keys, hosts: Callable[[], Sequence[str]]) -> None:
        self._app, self._keys, self._hosts = app, keys, hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self._hosts():
            await closed(f"this studio is not {host!r}")(scope, receive, send)
            return
        name = cookie_name(host)
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        known = cookies(headers).get(name, "")
        by_link = scope["method"] in SAFE and bool(given) and self._keys.opens(given)
        if not by_link and not same(known, self._keys.cookie):
            await closed("open the link that `voile studio` printed")(scope, receive, send)
            return
        if scope["method"] not in SAFE and not own_request(headers, host):
            await closed("the request comes from another page")(scope, receive, send)
            return
        await self._app(scope, receive, self._with_cookie(send, name) if by_link else send)

    def _with_cookie(self, send: Send, name: str) -> Send:
        cookie = f"{name}={self._keys.cookie}; HttpOnly; SameSite=Strict; Path=/"

        async def adding(message: Message) -> None:
            if message["type"] == "http.response.start":
                line = (b"set-cookie", cookie.encode())
                message["headers"] = [*message.get("headers", []), line]
            await send(message)

        return adding


def cookie_name(host: str) -> str:
    """Cookies do not tell ports apart, so that names do."""
    return f"voile_studio_{host.rpartition(':')[2]}"


def cookies(headers: Headers) -> dict[str, str]:
    """The cookies of a request."""
    pairs = (part.partition("=") for part in headers.get("cookie", "").split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def own_request(headers: Headers, host: str) -> bool:
    """Whether our own page sent it: forms of other sites cannot add a header, nor hide theirs."""
    origin = headers.get("origin", "")
    return origin == f"http://{host}" and "hx-request" in headers


def closed(why: str) -> Response:
    """The reply to whoever may not come in."""
    return Response(f"403: {why}\n", status_code=HTTPStatus.FORBIDDEN, media_type="text/plain")


# ---------------------------------------------------------------------- requests


def make_app(
    studio: Studio, keys: Keys, hosts: Callable[[], Sequence[str]] = lambda: ("testserver",)
) -> ASGIApp:
    """The application, with its door and its headers around it."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)
    routes = Routes(studio)
    app.add_api_route("/static/{name:path}", static, methods=["GET"])
    app.add_api_route("/upload", routes.upload, methods=["PUT"])
    app.add_api_route("/jobs/{job}", routes.job, methods=["GET"])
    app.add_api_route("/jobs/{job}/{action}", routes.job_action, methods=["POST"])
    app.add_api_route("/p/{project}", routes.first_screen, methods=["GET"])
    screen = "/p/{project}/{screen}"
    app.add_api_route(screen, routes.screen, methods=["GET"])
    app.add_api_route(screen + "/{part}", routes.part, methods=["GET"])
    app.add_api_route(screen + "/{action}", routes.action, methods=["POST"])
    for area in AREAS:
        where = "" if area.name == "start" else f"/{area.name}"
        handler = routes.area(area)
        app.add_api_route(where or "/", handler, methods=["GET"])
        app.add_api_route(f"/{area.name}/{{path:path}}", handler, methods=["GET", "POST"])
    return SecurityHeaders(Door(app, keys, hosts))


class Routes:
    """From requests to screens and back."""

    def __init__(self, studio: Studio) -> None:
        self._studio = studio
        self._screens: Mapping[str, Screen] = {screen.name: screen for screen in SCREENS}

    async def first_screen(self, project: str) -> Response:
        """A project is opened where it begins."""
        return RedirectResponse(f"/p/{quote(project)}/{SCREENS[0].name}", HTTPStatus.SEE_OTHER)

    async def screen(self, request: Request, project: str, screen: str) -> Response:
        """A whole page."""
        return await self._of_screen(request, project, screen, lambda found: found.show)

    async def part(self, request: Request, project: str, screen: str, part: str) -> Response:
        """A part of a page, or a file."""
        return await self._of_screen(request, project, screen, lambda s: s.parts.get(part))

    async def action(self, request: Request, project: str, screen: str, action: str) -> Response:
        """What a form or button asks for."""
        return await self._of_screen(request, project, screen, lambda s: s.actions.get(action))

    async def _of_screen(
        self, request: Request, project: str, screen: str, pick: Callable[[Screen], Any]
    ) -> Response:
        opened, found = self._studio.projects.get(project), self._screens.get(screen)
        handler = None if found is None else pick(found)
        if opened is None or found is None or handler is None:
            return self._missing()
        frame = {"open": opened, "project": opened.project, "screen": found}

        def work(form: Form) -> Reply | None:
            reply: Reply | None = handler(Visit(self._studio, opened, form))
            return reply

        return await self._answered(request, work, frame)

    def area(self, area: Area) -> Callable[..., Any]:
        """What answers the addresses of an area."""

        async def answer(request: Request, path: str = "") -> Response:
            words = tuple(part for part in path.split("/") if part)
            handler = area.get if request.method in SAFE else area.post
            frame = {"open": None, "project": None, "screen": area}

            def work(form: Form) -> Reply | None:
                return handler(AreaVisit(self._studio, words, form))

            return await self._answered(request, work, frame)

        return answer

    async def _answered(
        self, request: Request, work: Callable[[Form], Reply | None], frame: dict[str, Any]
    ) -> Response:
        try:
            reply = await run_in_threadpool(work, await form_of(request))
            if reply is None:
                return self._missing()
            if isinstance(reply, Go):
                return went(request, reply.to)
            if isinstance(reply, Download):
                return as_file(reply)
            return self._shown(request, reply, frame)
        except VoileError as error:
            return self._problem(request, error, frame)
        except Exception:
            # Shown to its owner alone: what failed is on their own terminal.
            traceback.print_exc()
            fault = VoileError(
                "the studio failed at this, and nothing was changed",
                hint="its terminal says more; please tell us, without private values",
            )
            return self._problem(request, fault, frame, HTTPStatus.INTERNAL_SERVER_ERROR)

    def _shown(self, request: Request, page: ScreenPage, frame: dict[str, Any]) -> Response:
        """A page in its frame; to htmx, only what changes."""
        if frame["open"] is not None:  # an action may have changed it
            frame["project"] = frame["open"].project
        inner = "hx-request" in request.headers
        context = {
            **frame, **page.context, "studio": self._studio, "calls": page.calls,
            "title": page.title or frame["screen"].title, "template": page.template,
            "groups": grouped(SCREENS), "walk": neighbours(frame["screen"]),
        }  # fmt: skip
        if page.part:
            text = rendered(page.template, context)
        else:
            text = rendered("inner.html" if inner else "base.html", context)
        return Response(text, page.status, media_type="text/html; charset=utf-8")

    def _problem(
        self,
        request: Request,
        error: VoileError,
        frame: dict[str, Any],
        status: HTTPStatus = HTTPStatus.UNPROCESSABLE_ENTITY,
    ) -> Response:
        """What is wrong and what to do: beside the form, or as a page."""
        context = {"problem": error}
        if "hx-request" in request.headers:
            text = rendered("problem.html", context)
            headers = {"HX-Retarget": "#problem", "HX-Reswap": "innerHTML"}
            return Response(text, status, headers, "text/html; charset=utf-8")
        page = ScreenPage("problem.html", context, status=status)
        return self._shown(request, page, frame)

    def _missing(self) -> Response:
        text = rendered("missing.html", {"studio": self._studio})
        return Response(text, HTTPStatus.NOT_FOUND, media_type="text/html; charset=utf-8")

    # ------------------------------------------------------------------ jobs and files

    async def job(self, request: Request, job: str) -> Response:
        """How far a job is; when it has ended, the page is loaded anew."""
        found = self._studio.jobs.get(job)
        if found is None or not found.running:
            return Response(headers={"HX-Refresh": "true"})
        del request
        text = rendered("job.html", {"job": found})
        return Response(text, media_type="text/html; charset=utf-8")

    async def job_action(self, job: str, action: str) -> Response:
        """Cancel a job, or forget that it failed, so that the page begins it again."""
        if action == "cancel":
            self._studio.jobs.cancel(job)
        elif action == "again":
            self._studio.jobs.forget(job)
        else:
            return self._missing()
        return Response(headers={"HX-Refresh": "true"})

    async def upload(self, request: Request, name: str = "") -> Response:
        """A file that was dropped on the page: into the studio's folder, whole or not at all."""
        frame = {"open": None, "project": None, "screen": AREAS[0]}
        try:
            place = await received(request, self._studio.folder, name)
            opened = self._studio.begin_project(place.name)
        except VoileError as error:
            return self._problem(request, error, frame)
        return went(request, opened.url)


def grouped(screens: Sequence[Screen]) -> list[tuple[str, list[Screen]]]:
    """The screens under the headings of the list of steps."""
    found: dict[str, list[Screen]] = {}
    for screen in screens:
        found.setdefault(screen.group, []).append(screen)
    return [*found.items()]


def neighbours(screen: Screen | Area) -> dict[str, Screen | None]:
    """The screens before and after one of a project, in the order of the steps."""
    place = next((i for i, one in enumerate(SCREENS) if one is screen), None)
    if place is None:
        return {"before": None, "after": None}
    return {
        "before": SCREENS[place - 1] if place else None,
        "after": SCREENS[place + 1] if place + 1 < len(SCREENS) else None,
    }


def went(request: Request, to: str) -> Response:
    """On to another page, for htmx or for a browser; a header holds no other letters."""
    to = quote(to, safe="/?&=#%+:,;@!$'()*~")
    if "hx-request" in request.headers:
        return Response(headers={"HX-Redirect": to})
    return RedirectResponse(to, HTTPStatus.SEE_OTHER)


def as_file(reply: Download) -> Response:
    """A file; its name may be any text."""
    headers = {}
    if reply.name:
        headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{quote(reply.name)}"
    return Response(reply.content, reply.status, headers, reply.media_type)


async def form_of(request: Request) -> Form:
    """The fields of a request: of its address, and of a form's body."""
    found: dict[str, list[str]] = {}
    for name, value in request.query_params.multi_items():
        if name != "token":
            found.setdefault(name, []).append(value)
    if request.method not in SAFE:
        body = bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_FORM:
                raise UsageError("the form is too large", hint="send less text")
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True)
        for name, values in fields.items():
            found.setdefault(name, []).extend(values)
    return Form(found)


async def received(request: Request, folder: Path, name: str) -> Path:
    """Write what is sent into a new file of the folder, beside its place and then renamed."""
    plain = re.sub(r"[^\w .()+-]+", "_", Path(name).name).strip(" .")
    if not plain or plain.endswith(".voile-project"):
        raise UsageError(f"{name!r} is no name for a table", hint="such as people.csv")
    stem, ending = Path(plain).stem[:LONGEST_NAME], Path(plain).suffix[:LONGEST_NAME]
    place = folder / f"{stem}{ending}"
    beside = folder / f".{place.name}.{secrets.token_hex(4)}"
    try:
        with beside.open("xb") as file:
            beside.chmod(0o600)
            async for chunk in request.stream():
                file.write(chunk)
        check_contents(beside, name)
        place = put_beside_others(beside, place)
    except OSError as error:
        raise UsageError(
            f"cannot write {str(place)!r}: {error.strerror}", hint="choose another folder"
        ) from None
    finally:
        beside.unlink(missing_ok=True)
    return place


def put_beside_others(file: Path, place: Path) -> Path:
    """Give a file its name, or one with a number; what has the name already is left alone.

    The same file again is the one that is there: private rows are not copied twice.
    """
    for number in range(1, 10_000):
        name = place if number == 1 else place.with_stem(f"{place.stem}-{number}")
        try:
            name.hardlink_to(file)
        except FileExistsError:
            if name.is_file() and filecmp.cmp(file, name, shallow=False):
                return name
            continue
        return name
    raise UsageError(f"{place.name!r} is there too many times", hint="give the file another name")


async def static(name: str) -> Response:
    """A script, a style or a picture of ours."""
    if not STATIC_NAME.fullmatch(name):
        return Response(status_code=HTTPStatus.NOT_FOUND)
    inside, shared = name.removeprefix("shared/"), name.startswith("shared/")
    found = (SHARED if shared else STATIC).joinpath(*inside.split("/"))
    if not found.is_file():
        return Response(status_code=HTTPStatus.NOT_FOUND)
    return Response(found.read_bytes(), media_type=KINDS[Path(name).suffix])
